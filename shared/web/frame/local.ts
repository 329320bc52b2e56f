/**
 * What only a script can do for whoever looks: times in their own zone, and buttons that copy. Without it times are UTC, and
 * the buttons are not there. A page that was fetched again is made local before it is compared with the one that is shown.
 */
export const local = `"use strict";
(() => {
  const two = (n) => String(n).padStart(2, "0");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

  function localise(root) {
    let day = "";
    for (const one of root.querySelectorAll("time[data-as]")) {
      const at = new Date(one.getAttribute("datetime"));
      if (Number.isNaN(at.getTime())) continue;
      const date = at.getFullYear() + "-" + two(at.getMonth() + 1) + "-" + two(at.getDate());
      const clock = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":");
      const exact = clock + "." + String(at.getMilliseconds()).padStart(3, "0");
      const { as } = one.dataset;
      if (as !== "day") one.textContent = as === "ms" ? exact : date + " " + clock;
      else {
        one.textContent = exact;
        if (date !== day) {
          const first = one.ownerDocument.createElement("span");
          first.className = "day";
          first.textContent = date + " ";
          one.prepend(first);
        }
        day = date;
      }
    }
  }

  const footer = document.getElementById("zone");
  if (footer && zone && zone !== "UTC") footer.textContent = "Times are local (" + zone + ") unless they say UTC, which is shown on hover.";
  localise(document);
  document.addEventListener("pawl:page", ({ detail }) => localise(detail));

  async function copy(text, back) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {}
    // Over plain HTTP browsers have no clipboard, but the old way.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "hidden";
    document.body.append(area);
    area.select();
    let done = false;
    try {
      done = document.execCommand("copy");
    } catch {}
    area.remove();
    back.focus();
    return done;
  }

  document.documentElement.classList.add("scripted");
  document.addEventListener("click", async ({ target }) => {
    const button = target.closest && target.closest("button[data-copies]");
    const from = button && document.getElementById(button.dataset.copies);
    if (!from) return;
    const done = await copy(from.textContent, button);
    const word = button.firstElementChild;
    word.textContent = done ? "Copied" : "Not copied";
    document.getElementById("news").textContent = word.textContent + " " + button.dataset.what;
    setTimeout(() => {
      word.textContent = "Copy";
    }, 2000);
  });
})();
`;
