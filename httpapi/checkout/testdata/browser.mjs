// Looks at the checkout page with Chromium. Reads {chromium, base, task, …} and answers a list of what is wrong.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
const require = createRequire(process.env.PAYMENTS_NODE_MODULES + "/");
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

let read = "";
for await (const chunk of process.stdin) read += chunk;
const input = JSON.parse(read);
const wrong = [];

const browser = await chromium.launch({
  executablePath: input.chromium,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

// open shows a page in a fresh window and notes whatever a browser complains of, and every request to elsewhere.
async function open(path, options = {}) {
  const { name = path, ...rest } = options;
  const context = await browser.newContext({ viewport: { width: 1200, height: 860 }, locale: "en-GB", timezoneId: "Europe/Madrid", ...rest });
  const page = await context.newPage();
  page.on("console", (m) => { if (["error", "warning"].includes(m.type()) && !m.text().startsWith("Failed to load resource: the server responded with a status of 40")) wrong.push(`${name}: console: ${m.text()}`); });
  page.on("pageerror", (e) => wrong.push(`${name}: script: ${e.message}`));
  page.on("request", (r) => { if (!r.url().startsWith(input.base)) wrong.push(`${name}: request to ${r.url()}`); });
  const answer = await page.goto(input.base + path, { waitUntil: "load" });
  if (answer.status() !== 200) wrong.push(`${name}: status ${answer.status()}`);
  return page;
}

const check = (ok, what) => { if (!ok) wrong.push(what); };
const until = async (what, ready, ms = 15000) => {
  const end = Date.now() + ms;
  for (;;) {
    const ok = await ready();
    if (ok || Date.now() > end) return check(ok, `never happened: ${what}`);
    await new Promise((r) => setTimeout(r, 30));
  }
};
// text is what an element says now, and nothing where there is none; a locator would wait for one.
const text = (page, selector) => page.evaluate((s) => document.querySelector(s)?.innerText ?? "", selector);
const control = async (what, body) => {
  const answer = await fetch(`${input.base}/control/${what}`, { method: "POST", body: body && JSON.stringify(body) });
  check(answer.ok, `control ${what} failed`);
  return answer.text();
};

const tasks = {
  // Every state, wide and on a phone, light and dark: nothing sticks out, nothing is refused by the page's own
  // policy, axe finds nothing.
  async gallery() {
    const looks = [
      ["desktop-light", { colorScheme: "light" }],
      ...(input.shots ? [["desktop-dark", { colorScheme: "dark" }]] : []), // its colours are the phone's
      ["phone-light", { colorScheme: "light", viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true }],
      ["phone-dark", { colorScheme: "dark", viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true }],
    ];
    await Promise.all(looks.map(async ([look, options]) => {
      const page = await open(input.pages[0].path, { name: look, ...options, reducedMotion: "reduce" });
      for (const { name: exhibit, path, status = 200 } of input.pages) {
        const name = `${exhibit}-${look}`;
        const answer = await page.goto(input.base + path, { waitUntil: "load" });
        check(answer.status() === status, `${name}: status ${answer.status()}`);
        const [have, room] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
        check(have <= room, `${name}: ${have} pixels wide in a window of ${room}`);
        const outside = await page.evaluate(() => [...document.querySelectorAll("aside *, main *")].filter((el) => {
          const box = el.getBoundingClientRect(), room = el.closest("aside, main").getBoundingClientRect();
          return box.width > 1 && !el.closest(".hash") && (box.right > room.right + 1 || box.left < room.left - 1);
        }).map((el) => el.outerHTML.slice(0, 80)));
        // The name of a network that does not fit beside the button goes on in the next line of the text.
        const blocks = await page.evaluate(() => [...document.querySelectorAll(".label .onnetwork")].filter((el) =>
          [...el.getClientRects()].some((line) => line.height > 1.5 * parseFloat(getComputedStyle(el).fontSize))).map((el) => el.outerHTML));
        for (const el of blocks) wrong.push(`${name}: breaks as a block of its own: ${el}`);
        for (const el of outside) wrong.push(`${name}: sticks out of its column: ${el}`);
        if (input.shots) await page.screenshot({ path: `${input.shots}/${name}.png`, fullPage: true });
        await page.evaluate(axe);
        const result = await page.evaluate(() => axe.run({ resultTypes: ["violations"] }));
        for (const v of result.violations) wrong.push(`${name}: axe ${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).join(" | ")}`);
      }
      await page.context().close();
    }));
  },

  // Choose, try a payment that fails, pay what the page asks for, and see it confirm: over the real engine.
  async pay() {
    const page = await open(input.path);
    await page.locator(".choice", { hasText: input.name }).click();
    await page.locator("#amount").waitFor();
    const shown = { amount: await page.locator("#amount").innerText(), address: await page.locator("#address").innerText() };
    const uri = await page.locator(".pay a.button").getAttribute("href");
    check(uri.includes(shown.address), `the wallet is opened with ${uri}, which does not name ${shown.address}`);

    const failed = await control("fail", shown);
    await page.locator("#hint summary").click();
    await page.locator("#tx").fill(failed);
    await page.locator("#hint button").click();
    await page.locator("#hint [role=alert]").waitFor();
    check((await page.locator("#hint [role=alert]").innerText()).startsWith("This transaction failed on the network"),
      `a failed transaction is answered by ${await page.locator("#hint [role=alert]").innerText()}`);

    await page.evaluate(() => { window.same = true; });
    const headline = () => text(page, "h1");
    const progress = () => text(page, ".progress");
    const hash = await control("pay", shown);
    await until("the page has seen the payment", async () => (await headline()) === "Payment seen");
    await control("mine");
    await until("the page counts a confirmation", async () => (await headline()) === "Confirming your payment" && /^1 of \d/.test(await progress()));
    // The failed one is listed too where the pool was read before its block.
    const named = await page.locator(".transactions .hash").allInnerTexts();
    check(named.some((one) => one.replace(/\s/g, "").includes(hash.slice(0, 20))), `the page does not name the transaction ${hash}`);
    for (let blocks = 0; blocks < 5 && (await headline()) !== "Paid"; blocks++) {
      const before = await progress();
      await control("mine");
      await until("the page goes on with the chain", async () => (await headline()) === "Paid" || (await progress()) !== before);
    }
    check((await headline()) === "Paid", `in the end the page says ${await headline()}`);
    check((await page.title()).startsWith("Paid"), "the title does not say paid");
    check(await page.evaluate(() => window.same === true), "the page was loaded anew");
    await page.context().close();
  },

  // A payment arrives while the page is open, and what was typed stays.
  async live() {
    const page = await open(input.path);
    await page.evaluate(() => { window.same = true; });
    await page.locator("#hint summary").click();
    await page.locator("#tx").fill("0xabc");
    await control("underpaid");
    await until("the page says that a part is missing", async () => (await page.locator("h1").innerText()).includes("still missing"));
    check(await page.locator("#tx").inputValue() === "0xabc", "what was typed is gone after an update");
    check(await page.evaluate(() => document.activeElement.id) === "tx", "the focus is gone after an update");
    check((await page.locator("[data-announce]").innerText()).includes("still missing"), "the change is not announced to screen readers");
    await control("confirming");
    await until("the page counts confirmations", async () => (await text(page, ".progress")).includes("5 of 12"));
    await control("paid");
    await until("the page says paid", async () => (await page.locator("h1").innerText()) === "Paid");
    check((await page.title()).startsWith("Paid"), "the title does not say paid");
    check(await page.evaluate(() => window.same === true), "the page was loaded anew");
    await until("the stream is closed at the end", async () => (await (await fetch(`${input.base}/control/streams`, { method: "POST" })).text()) === "0");
    await page.context().close();
  },

  // Without EventSource the page asks by itself.
  async polling() {
    const context = await browser.newContext();
    await context.addInitScript(() => {
      delete window.EventSource;
      const real = window.setInterval;
      window.setInterval = (f, ms) => real(f, ms / 50);
    });
    const page = await context.newPage();
    await page.goto(input.base + input.path);
    await control("paid");
    await until("the page says paid without a stream", async () => (await page.locator("h1").innerText()) === "Paid");
    await context.close();
  },

  // A proxy holds back what the stream delivers, and ends nothing. Time passes 30 times as fast for the script.
  async silent() {
    const context = await browser.newContext();
    await context.addInitScript(() => {
      const real = performance.now.bind(performance);
      performance.now = () => 30 * real();
    });
    const page = await context.newPage();
    await page.goto(input.base + input.path);
    check(await page.locator("[data-quiet]").isHidden(), "the page says at once that nothing arrives");
    await until("the page says that no updates arrive", async () => page.locator("[data-quiet]").isVisible());
    await control("paid");
    await until("the page says paid", async () => (await page.locator("h1").innerText()) === "Paid");
    await until("the notice is gone once nothing is awaited", async () => page.locator("[data-quiet]").isHidden());
    await context.close();
  },

  // A quote runs out while the page is open.
  async quote() {
    const page = await open(input.path);
    check(/^0:0[1-9]$/.test(await page.locator("[data-countdown]").innerText()), `the time left is ${await page.locator("[data-countdown]").innerText()}`);
    await control("later");
    await until("the page asks for a new amount", async () => (await page.locator("h1").innerText()).includes("run out"));
    check(await page.locator("#amount").count() === 0, "an amount that no longer holds is still shown");
    await page.context().close();
  },

  // What is copied is what pays.
  async copy() {
    for (const [what, label] of [["amount", "0.021321"], ["address", input.address]]) {
      const page = await open(input.path, { permissions: ["clipboard-read", "clipboard-write"] });
      await page.locator(`#copy-${what}`).click();
      await until(`"Copied" is said of the ${what}`, async () => (await page.locator(`#copy-${what} span`).innerText()) === "Copied");
      check(await page.evaluate(() => navigator.clipboard.readText()) === label, `the ${what} in the clipboard is not ${label}`);
      check((await page.locator("[data-announce]").textContent()) === "Copied", "copying is not announced to screen readers");
      await page.context().close();
    }
    // Where there is no clipboard interface, the old way.
    const page = await open(input.path);
    await page.evaluate(() => { Object.defineProperty(navigator, "clipboard", { value: undefined }); });
    await page.locator("#copy-amount").click();
    check(await page.evaluate(() => String(getSelection())) === "0.021321", "the amount is not selected where it cannot be copied");
    await page.context().close();
  },

  // By the keyboard alone: the way through the page is the way down the page, every stop on it can be seen, and the
  // news take the focus along when what had it is gone.
  async keyboard() {
    for (const [look, options] of [["desktop", {}], ["phone", { viewport: { width: 360, height: 740 } }]]) {
      const page = await open(input.path, { name: look, ...options });
      // where says what has the focus: its text, how far down it is, and whether it stands out.
      const where = () => page.evaluate(() => {
        const el = document.activeElement, box = el.getBoundingClientRect(), style = getComputedStyle(el);
        return {
          is: el.id || el.textContent.trim().replace(/\s+/g, " "), tag: el.tagName, aside: !!el.closest("aside"), fixed: style.position === "absolute",
          top: box.top + scrollY, seen: box.width > 1 && box.height > 1 && style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
        };
      });
      const walk = async () => {
        const stops = [];
        for (let presses = 0; presses < 40; presses++) {
          await page.keyboard.press("Tab");
          const at = await where();
          if (at.tag === "BODY" || stops.some((s) => s.is === at.is && s.top === at.top)) break;
          stops.push(at);
          check(at.seen, `${look}: it cannot be seen that ${at.is} has the focus`);
        }
        const down = stops.filter((s) => !s.aside && !s.fixed); // beside the summary, which is a column of its own
        for (let i = 1; i < down.length; i++) check(down[i].top >= down[i - 1].top - 1, `${look}: from ${down[i - 1].is} the focus goes up to ${down[i].is}`);
        return stops;
      };
      let stops = await walk();
      check(stops[0]?.is.startsWith("Skip"), `${look}: the first stop is ${stops[0]?.is}`);
      if (look === "desktop") {
        check(stops.filter((s) => s.tag === "BUTTON").length === 5, `${look}: ${stops.filter((s) => s.tag === "BUTTON").length} of 5 options can be reached`);
        await page.locator(".choice").first().focus();
        await page.keyboard.press("Enter");
        await page.locator("#amount").waitFor();
        stops = await walk();
      }
      for (const stop of ["copy-amount", "Open in wallet", "copy-address", "Pay another way"]) check(stops.some((s) => s.is === stop), `${look}: ${stop} cannot be reached`);
      if (look === "desktop") {
        await page.locator("#hint summary").focus();
        await page.keyboard.press("Enter");
        await page.keyboard.press("Tab");
        await page.keyboard.type("0x" + "ab".repeat(32));
        await page.keyboard.press("Enter");
        await page.locator("#hint [role=alert]").waitFor();
      } else {
        // What had the focus goes with the request to pay.
        await page.locator("#copy-amount").focus();
        await control("paid");
        await until("paid", async () => (await text(page, "h1")) === "Paid");
        check((await where()).is === "main", `${look}: after the page became paid the focus is on ${(await where()).is}`);
        await page.keyboard.press("Tab");
        check((await where()).is.startsWith("Return to"), `${look}: the next stop is ${(await where()).is}`);
      }
      await page.context().close();
    }
  },

  // Nothing moves for those who asked for rest; for others something does, or this would prove nothing.
  async motion() {
    for (const path of input.paths) {
      for (const reducedMotion of ["reduce", "no-preference"]) {
        const page = await open(path, { name: `${path} ${reducedMotion}`, reducedMotion });
        const moving = await page.evaluate(() => document.getAnimations().filter((a) => a.playState === "running").length);
        check(reducedMotion === "reduce" ? moving === 0 : moving > 0, `${path}: ${moving} animations with ${reducedMotion}`);
        await page.context().close();
      }
    }
  },

  // Everything but live updates without scripts: choose, look again, give a hint; with the keyboard alone.
  async noscript() {
    const page = await open(input.path, { javaScriptEnabled: false });
    check(await page.locator(".copy").first().isVisible().catch(() => false) === false, "copy buttons are shown that cannot work");
    await page.locator(".choice").first().focus();
    await page.keyboard.press("Enter");
    await until("the page to pay on, after choosing", async () => (await page.locator("h1").innerText()) === "Pay with ETH on Ethereum");
    check((await page.locator(".until time").innerText()).endsWith("UTC"), "the time is not said to be UTC");
    await page.locator("#hint summary").click();
    await page.locator("#tx").fill("0x" + "ab".repeat(32));
    await page.locator("#hint button").click();
    await page.waitForURL(/hint=unknown/);
    check((await page.locator("#hint [role=alert]").innerText()).includes("does not know this transaction"), "the answer to a hint is not shown");
    await control("paid");
    await page.locator(".refresh button").click();
    await until("paid after looking again", async () => (await page.locator("h1").innerText()) === "Paid");
    await page.context().close();
  },
};

try {
  await tasks[input.task]();
} finally {
  await browser.close();
}
console.log(JSON.stringify(wrong));
