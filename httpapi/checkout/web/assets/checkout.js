// Makes the page live: the state arrives as server-sent events, and the part of the page marked data-live is fetched
// again when its revision changes. Without this script the page works by its forms and its refresh button.
(() => {
  "use strict";
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));
  const live = () => document.querySelector("[data-live]");
  if (!live()) return;
  document.documentElement.classList.add("scripted");
  const words = document.body.dataset;
  const quietAfter = 45000, pollEvery = 15000, slowly = 60000, answerWithin = 10000; // milliseconds
  // The page's language, as this visitor writes it: en-GB rather than en.
  const page = document.documentElement.lang || undefined;
  const lang = (navigator.languages || []).find((l) => l.split("-")[0] === page) || page;

  // The server's clock, so that a wrong clock here does not make a quote seem over. performance.now only goes forward.
  let base = 0;
  const now = () => base + performance.now();
  const setClock = (iso) => { const t = Date.parse(iso); if (t) base = t - performance.now(); };

  const localise = () => {
    for (const time of all("time[data-local]")) {
      const date = new Date(time.dateTime);
      if (isNaN(date)) continue;
      const style = time.dataset.local === "time" ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" };
      time.title = time.textContent;
      time.textContent = new Intl.DateTimeFormat(lang, style).format(date);
    }
  };

  const tick = () => {
    for (const el of all("[data-countdown]")) {
      const left = Math.max(0, Math.ceil((Date.parse(el.dataset.countdown) - now()) / 1000));
      const [h, m, s] = [Math.floor(left / 3600), Math.floor(left / 60) % 60, left % 60];
      const text = (h ? h + ":" + String(m).padStart(2, "0") : m) + ":" + String(s).padStart(2, "0");
      if (el.textContent !== text) el.textContent = text;
      el.parentElement.classList.toggle("soon", left < 120);
      if (left === 0 && !el.dataset.over) {
        el.dataset.over = "1";
        refresh(true);
      }
    }
  };

  const copy = async (button) => {
    let ok = false;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      ok = true;
    } catch {
      // Not a secure context, or refused: select what is shown and copy the old way.
      const shown = document.getElementById(button.id.replace("copy-", ""));
      if (shown) {
        getSelection().selectAllChildren(shown);
        try { ok = document.execCommand("copy"); } catch { ok = false; }
      }
    }
    const label = button.querySelector("span");
    const before = button.dataset.label || (button.dataset.label = label.textContent);
    label.textContent = ok ? words.copied : words.copyFailed;
    button.classList.toggle("done", ok);
    announce(label.textContent);
    clearTimeout(button.timer);
    button.timer = setTimeout(() => { label.textContent = before; button.classList.remove("done"); }, 2000);
  };

  const announce = (text) => { const el = document.querySelector("[data-announce]"); if (el) el.textContent = text; };
  const online = (yes) => { const el = document.querySelector("[data-connection]"); if (el) el.hidden = yes; };
  const quiet = (yes) => { const el = document.querySelector("[data-quiet]"); if (el) el.hidden = !yes; };

  // refresh fetches the page and takes over what changed, leaving open what is open and typed what is typed.
  let fetching = false, fetched = performance.now();
  const refresh = async (force) => {
    if (fetching) return;
    fetching = true;
    fetched = performance.now();
    try {
      // An answer that never comes must not keep the next one from being asked for.
      const stop = new AbortController();
      const limit = setTimeout(() => stop.abort(), answerWithin);
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store", signal: stop.signal });
      if (!answer.ok) throw new Error(answer.status);
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      clearTimeout(limit);
      const fresh = next.querySelector("[data-live]"), old = live();
      if (!fresh) throw new Error("no page");
      online(true);
      setClock(fresh.dataset.now);
      if (!force && fresh.dataset.revision === old.dataset.revision) return;
      const open = all("details[open]", old).map((d) => d.id);
      const typed = all("input:not([type=hidden])", old).map((i) => [i.id, i.value]);
      const focused = document.activeElement && old.contains(document.activeElement) ? document.activeElement : null;
      const moved = fresh.dataset.state !== old.dataset.state;
      old.replaceWith(document.importNode(fresh, true));
      for (const id of open) { const d = document.getElementById(id); if (d) d.open = true; }
      for (const [id, value] of typed) { const i = document.getElementById(id); if (i && value) i.value = value; }
      // What had the focus may be gone: then it is where the news are, and not at the top of the document.
      if (focused) (document.getElementById(focused.id) || document.getElementById("main")).focus({ preventScroll: true });
      const test = document.querySelector("[data-test]"), freshTest = next.querySelector("[data-test]");
      if (test && freshTest) test.replaceWith(document.importNode(freshTest, true));
      document.title = next.title;
      localise();
      tick();
      if (moved) {
        announce(live().dataset.headline);
        scrollTo({ top: 0, behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
      }
    } catch {
      online(false);
    } finally {
      fetching = false;
    }
  };

  // Server-sent events tell of changes, and a heartbeat says that they still arrive. A proxy may hold both back without
  // ending the stream: after quietAfter without either the page says so, and is fetched every pollEvery. It is fetched
  // every slowly in any case.
  let events = null, heard = performance.now();
  const hear = () => { heard = performance.now(); quiet(false); online(true); };
  const listen = () => {
    if (events || !window.EventSource) return;
    events = new EventSource(live().dataset.events);
    events.addEventListener("heartbeat", hear);
    events.addEventListener("state", (e) => {
      hear();
      const state = JSON.parse(e.data);
      if (state.revision !== live().dataset.revision) refresh();
      if (state.final && events) { events.close(); events = null; }
    });
    events.onerror = () => { if (events && events.readyState === EventSource.CLOSED) events = null; };
  };
  const poll = () => {
    if (live().hasAttribute("data-final")) return quiet(false);
    const silent = performance.now() - heard >= quietAfter;
    quiet(silent);
    if (performance.now() - fetched < (silent || !events ? pollEvery : slowly)) return;
    refresh();
    listen();
  };

  document.addEventListener("click", (e) => {
    const button = e.target.closest && e.target.closest("[data-copy]");
    if (button) copy(button);
  });
  // A second press must not send a form twice.
  document.addEventListener("submit", (e) => {
    if (e.target.dataset.sent) return e.preventDefault();
    e.target.dataset.sent = "1";
    for (const b of all("button", e.target)) b.setAttribute("aria-busy", "true");
  });
  addEventListener("pageshow", (e) => {
    if (!e.persisted) return;
    for (const f of all("form[data-sent]")) { delete f.dataset.sent; for (const b of all("[aria-busy]", f)) b.removeAttribute("aria-busy"); }
    refresh();
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && !live().hasAttribute("data-final")) refresh(); });

  setClock(live().dataset.now);
  localise();
  tick();
  setInterval(tick, 1000);
  setInterval(poll, 1000);
  if (!live().hasAttribute("data-final")) listen();
})();
