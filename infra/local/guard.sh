# Runs a server as the child of a process that may die without a word. Its parent holds a pipe to standard input; when
# that ends, for whatever reason, the server is stopped. Prints the server's pid on descriptor 4.
exec 3<&0
"$@" </dev/null 3<&- 4>&- &
server=$!
echo "$server" >&4
exec 4>&-
(
  read -r _ <&3
  kill -CONT "$server" 2>/dev/null
  kill -TERM "$server" 2>/dev/null
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    kill -0 "$server" 2>/dev/null || exit 0
    sleep 0.1
  done
  kill -KILL "$server" 2>/dev/null
) >/dev/null 2>&1 &
watcher=$!
exec 3<&-
wait "$server"
status=$?
kill "$watcher" 2>/dev/null
exit "$status"
