# Runs a server as the child of a process that may die without a word. Its parent holds a pipe to standard input; when
# that ends, for whatever reason, the server is stopped. Prints the server's pid on descriptor 4.
exec 3<&0
"$@" </dev/null 3<&- 4>&- &
server=$!
echo "$server" >&4
exec 4>&-
(
  read -r _ <&3
  # From here on it ends by itself, so that it leaves no nap behind.
  trap '' TERM
  kill -CONT "$server" 2>/dev/null
  kill -TERM "$server" 2>/dev/null
  naps=0
  while [ "$naps" -lt 100 ]; do
    kill -0 "$server" 2>/dev/null || exit 0
    sleep 0.02
    naps=$((naps + 1))
  done
  kill -KILL "$server" 2>/dev/null
) >/dev/null 2>&1 &
watcher=$!
exec 3<&-
wait "$server"
status=$?
kill "$watcher" 2>/dev/null
wait "$watcher"
exit "$status"
