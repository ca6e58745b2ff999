// What the console adds in the browser: the clock of staleness, the keyboard, the copy button.
// Everything works without it; nothing here builds markup, so the content policy can stay strict.
(() => {
  "use strict";
  const $ = (selector, root = document) => root.querySelector(selector);

  // ---- live: what the stream last said, and for how long it has been silent ----
  const live = $("#live");
  const TICK_MS = 5000;
  let heard = 0; // on the monotonic clock; 0 = never
  let state = "";

  function show(next, word, icon) {
    if (!live || state === next) return;
    const before = state;
    state = next;
    live.classList.toggle("lost", next === "lost");
    $("[data-word]", live).textContent = word;
    $("use", live).setAttribute("href", icon);
    // Said once per change, not at each tick; the first "live" is no news.
    const said = $("#live-said");
    if (said && before) said.textContent = next === "lost" ? `${word} ${$("time", live).textContent}` : word;
  }

  document.addEventListener("tick", (event) => {
    heard = performance.now();
    try {
      const now = JSON.parse(event.detail.data);
      const time = $("time", live);
      time.textContent = now.time;
      time.setAttribute("datetime", now.iso);
      time.title = now.full;
    } catch { /* a tick without a time still says that the server is there */ }
    show("live", live.dataset.live, "#i-dot");
  });
  document.addEventListener("gone", () => location.assign("/login"));

  const begun = performance.now();
  setInterval(() => {
    if (!live || document.hidden) return;
    const silent = performance.now() - (heard || begun);
    if (silent < 2.5 * TICK_MS) return;
    show("lost", live.dataset.lost, "#i-end");
    // The stream tries again by itself; until then the page asks.
    if (Math.round(silent / 1000) % 10 === 0) document.body.dispatchEvent(new CustomEvent("poll"));
  }, 1000);
  // A tab that was hidden had closed its stream: that silence is its own, not the server's.
  document.addEventListener("visibilitychange", () => { if (!document.hidden && heard) heard = performance.now(); });

  // ---- keyboard ----
  function move(step) {
    const links = [...document.querySelectorAll("[data-go]")];
    if (!links.length) return;
    const row = document.activeElement?.closest("tr");
    const at = links.findIndex((link) => link === document.activeElement || link.closest("tr") === row && row);
    const next = links[Math.min(Math.max(at + step, 0), links.length - 1)];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const act = {
      "/": () => $("#q")?.focus(),
      "?": () => { const help = $("[data-help]"); if (help) location.assign(help.href); },
      j: () => move(1),
      k: () => move(-1),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  // ---- copy: the clipboard needs a secure page; the older way works everywhere ----
  async function copy(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const box = document.createElement("textarea");
    box.value = text;
    box.className = "vh";
    document.body.append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await copy(document.getElementById(button.dataset.copy).textContent.trim());
    const word = button.textContent;
    button.textContent = button.dataset.done;
    setTimeout(() => { button.textContent = word; }, 2000);
  });

  // ---- after each swap, and once now ----
  function dress() {
    for (const button of document.querySelectorAll("[data-copy][hidden]")) button.hidden = false;
  }
  document.addEventListener("htmx:after:swap", dress);
  dress();

  // The set-up code comes behind the # of the printed address, so that it never reaches a log.
  const code = $("#code");
  if (code && location.hash.length > 1) {
    code.value = decodeURIComponent(location.hash.slice(1));
    history.replaceState(null, "", location.pathname);
  }
})();
