/**
 * All that the pages need of a script: they show changes as they happen. Everything else works without.
 * The page is fetched again and its <main> made like the new one, element by element, so that the focus, what is
 * unfolded and what was typed stay. While nobody looks, nothing is asked for.
 */
export const script = `"use strict";
(() => {
  const news = document.getElementById("news");
  const main = () => document.getElementById("main");
  const words = new Map();
  let source, timer, due, busy = false, missed = false, last = 0;

  if (/[?&]done=/.test(location.search)) history.replaceState(null, "", location.pathname);

  const like = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && a.id === b.id;

  function morph(old, now) {
    if (now.dataset && now.dataset.words && now.dataset.words === old.dataset.words) return;
    if (old.nodeType !== 1) {
      if (old.data !== now.data) old.data = now.data;
      return;
    }
    for (const { name } of [...old.attributes])
      if (!now.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
    for (const { name, value } of now.attributes)
      if (old.getAttribute(name) !== value && !(name === "value" && old.type !== "hidden")) old.setAttribute(name, value);
    let at = old.firstChild;
    for (const child of [...now.childNodes]) {
      if (child.id && !(at && at.id === child.id)) {
        const there = [...old.children].find((one) => one.id === child.id);
        if (there) {
          old.insertBefore(there, at);
          at = there;
        }
      }
      if (at && like(at, child)) {
        morph(at, child);
        at = at.nextSibling;
      } else old.insertBefore(document.importNode(child, true), at);
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  async function refresh() {
    if (busy) {
      missed = true;
      return;
    }
    busy = true;
    try {
      const answer = await fetch(location.pathname + location.search);
      if (answer.redirected) return location.reload();
      if (!answer.ok) return soon(5000);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const now = page.getElementById("main");
      const focus = document.activeElement && document.activeElement.id;
      const before = main().dataset.says;
      document.dispatchEvent(new CustomEvent("pawl:page", { detail: now }));
      morph(main(), now);
      speak();
      if (document.title !== page.title) document.title = page.title;
      if (focus && document.activeElement === document.body)
        (document.getElementById(focus) || main()).focus({ preventScroll: true });
      if (now.dataset.says !== before) news.textContent = now.dataset.says;
      if (!now.dataset.live) stop();
      later();
    } catch {
      soon(5000);
    } finally {
      busy = false;
      last = Date.now();
      if (missed) {
        missed = false;
        soon();
      }
    }
  }

  // However much happens, the page is fetched once a second at most.
  function soon(wait = 200) {
    const at = Math.max(Date.now() + wait, last + 1000);
    if (timer && due <= at) return;
    clearTimeout(timer);
    due = at;
    timer = setTimeout(() => {
      timer = undefined;
      refresh();
    }, at - Date.now());
  }

  // What turns say while they run: text, and nothing else. A turn that is stored has no such place on the page any more.
  function speak() {
    for (const place of document.querySelectorAll("[data-words]")) {
      const said = plain(words.get(place.dataset.words) || "");
      if (place.textContent === said) continue;
      const isRead = place.scrollTop + place.clientHeight < place.scrollHeight - 4;
      place.textContent = said;
      if (!isRead) place.scrollTop = place.scrollHeight;
    }
  }

  // As the page's own texts: what can't be seen, or turns the direction of a text, is spelt out.
  function plain(text) {
    return text.replace(/[^\\P{Cc}\\t\\n]|[\\p{Cf}\\u2028\\u2029]/gu, (char) => "\\\\u" + char.codePointAt(0).toString(16).padStart(4, "0"));
  }

  function hear({ fence, key, at, text }) {
    const turn = fence + " " + key;
    if (words.size > 100) words.clear();
    words.set(turn, (words.get(turn) || "").slice(0, at) + text);
    speak();
  }

  // A page that was made from what was known a while ago says when it can be made anew.
  function later() {
    const { again } = main().dataset;
    if (again) soon(Number(again));
  }

  function listen() {
    const { live } = main().dataset;
    if (source || !live) return;
    source = new EventSource(live);
    for (const kind of ["transition", "journal", "changed"]) source.addEventListener(kind, () => soon());
    source.addEventListener("delta", ({ data }) => hear(JSON.parse(data)));
    source.addEventListener("end", () => {
      stop();
      soon();
    });
    // Browsers connect anew by themselves, unless they were answered that there is nothing.
    source.addEventListener("error", () => {
      if (!source || source.readyState !== 2) return;
      stop();
      setTimeout(() => refresh().then(listen), 10000);
    });
  }

  function stop() {
    if (source) source.close();
    source = undefined;
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return stop();
    if (main().dataset.live) refresh().then(listen);
  });
  addEventListener("pagehide", stop);
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    for (const form of document.forms) delete form.dataset.sent;
    listen();
  });
  // A second click is not a second answer.
  document.addEventListener("submit", (event) => {
    const { target } = event;
    if (target.dataset.sent) event.preventDefault();
    target.dataset.sent = "1";
  });
  listen();
  later();
})();
`;
