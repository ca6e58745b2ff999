// The wall in the browser: figures by a stream, by asking where the stream is silent, and how old each is, on the
// browser's monotonic clock. It comes back by itself when the server does, and loads itself anew after an upgrade.
(() => {
  "use strict";
  const wall = document.querySelector("#wall");
  const words = wall.dataset;
  const INTERVAL_MS = Number(words.interval);
  const tiles = new Map([...document.querySelectorAll("[data-tile]")].map((tile) => [tile.dataset.tile, tile]));
  const fresh = new Map(); // per tile: when its data was made, on the monotonic clock, and what the clock said then
  let heard = performance.now(); // the last sign of life of the server
  let source = null;
  let asking = false;

  const pad = (n) => String(n).padStart(2, "0");
  function age(ms) {
    const s = Math.max(0, Math.round(ms / 1000));
    return s < 120 ? `${s} s` : s < 3600 ? `${pad(Math.floor(s / 60))}:${pad(s % 60)}` : `${Math.floor(s / 3600)}:${pad(Math.floor(s / 60) % 60)} h`;
  }
  const fill = (text, name, value) => text.replace(`{${name}}`, value);

  function apply(data) {
    heard = performance.now();
    if (data.version !== words.version) return location.reload();
    document.querySelector("#time").textContent = data.time;
    for (const said of data.tiles) {
      const tile = tiles.get(said.id);
      if (!tile) continue;
      fresh.set(said.id, { at: heard - data.age_ms, time: data.made });
      tile.classList.toggle("alarm", said.alarm);
      const figure = tile.querySelector("[data-stat]");
      if (figure && said.value !== undefined) {
        figure.textContent = said.value;
        figure.classList.toggle("long", said.value.length > 7);
      }
      for (const [stat, value] of Object.entries(said.rows ?? {})) {
        const cell = tile.querySelector(`[data-stat="${stat}"]`);
        if (cell) cell.textContent = value;
      }
      tile.querySelector("[data-note]").textContent = said.note;
    }
    show();
  }

  // Older than two intervals is said in words and by a pattern; older than five, the figure gives way.
  function show() {
    const now = performance.now();
    for (const [id, tile] of tiles) {
      const known = fresh.get(id) ?? { at: Number(tile.dataset.at), time: words.made };
      const old = now - known.at;
      const stale = old > 2 * INTERVAL_MS;
      const gone = old > 5 * INTERVAL_MS;
      tile.classList.toggle("stale", stale);
      tile.classList.toggle("nodata", gone);
      tile.querySelector("[data-age]").textContent = fill(stale ? words.stale : words.ago, "age", age(old));
      tile.querySelector("[data-figure]").hidden = gone;
      const since = tile.querySelector("[data-gone]");
      since.hidden = !gone;
      since.textContent = gone ? fill(words.since, "at", known.time) : "";
    }
    const silent = now - heard;
    const server = document.querySelector("#server");
    server.classList.toggle("lost", silent > 2 * INTERVAL_MS);
    server.querySelector("[data-word]").textContent = fill(silent > 2 * INTERVAL_MS ? words.lost : words.server, "age", age(silent));
    document.querySelector("#page").dataset.beat = String(Math.floor(now / 1000));
    document.querySelector("#page [data-word]").textContent = words.page + (Math.floor(now / 1000) % 2 ? " ·" : "");
  }

  function listen() {
    if (source && source.readyState !== EventSource.CLOSED) return;
    source = new EventSource(words.events);
    source.addEventListener("tiles", (event) => apply(JSON.parse(event.data)));
    source.addEventListener("beat", () => { heard = performance.now(); });
    source.addEventListener("gone", () => location.reload());
  }

  // Where the stream is silent the page asks; whoever isn't known any more goes where a code is asked for.
  async function ask() {
    if (asking) return;
    asking = true;
    try {
      const answer = await fetch(words.tiles, { cache: "no-store", signal: AbortSignal.timeout(INTERVAL_MS), redirect: "manual" });
      if (answer.type === "opaqueredirect" || answer.status === 401) return location.reload();
      if (answer.ok) apply(await answer.json());
    } catch { /* the server is away; the tiles say how old they are */ } finally {
      asking = false;
    }
  }

  let turn = 0;
  setInterval(() => {
    show();
    turn += 1;
    const silent = performance.now() - heard;
    if (silent > 1.5 * INTERVAL_MS && turn % 2 === 0) ask();
    if (silent > 4 * INTERVAL_MS && turn % 5 === 0) { source?.close(); source = null; }
    if (turn % 3 === 0) listen();
    // Four pixels a minute, so that no line burns in.
    if (turn % 60 === 0) wall.style.transform = `translate(${(turn / 60) % 3 * 4 - 4}px, ${(turn / 180) % 3 * 4 - 4}px)`;
  }, 1000);
  listen();
  show();
})();
