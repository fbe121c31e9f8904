// Headless Chromium with the player page.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chromium } from 'playwright-core';

const WAIT_MS = 60_000;
/** Each page has a window of its own. Chromium loads two pages of suggestions into it that nobody sees; they cost more
 *  processor time than the player. The other features are those of Playwright's list, which this one replaces, that
 *  matter here. */
const DISABLED_FEATURES = ['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup', 'HttpsUpgrades', 'MediaRouter', 'OptimizationHints', 'PaintHolding'];

/** Starts a browser; undefined if none is installed. */
export async function launch() {
  let executablePath;
  const names = process.env.CHROMIUM ? [process.env.CHROMIUM] : ['chromium', 'chromium-browser', 'google-chrome'];
  for (const name of names) {
    try {
      executablePath ??= execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
    } catch { /* the next name */ }
  }
  if (!executablePath) return undefined;
  return chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-gpu', '--autoplay-policy=no-user-gesture-required', `--disable-features=${DISABLED_FEATURES}`],
  });
}

/** Opens a title in a player. `faults` collects errors and failed requests. `prepare` can change the page first.
 *  `replaceTitle` opens another title in the same page, as a viewer does. */
export async function open(browser, server, title, query, prepare = async () => {}) {
  const page = await browser.newPage({ viewport: { width: 1000, height: 900 } });
  await prepare(page);
  const faults = [];
  page.on('pageerror', (error) => faults.push(`page: ${error.message}`));
  page.on('response', (r) => r.status() >= 400 && faults.push(`${r.status()} ${r.url()}`));
  page.on('requestfailed', (r) => {
    const why = r.failure()?.errorText;
    if (why !== 'net::ERR_ABORTED') faults.push(`${why} ${r.url()}`);
  });
  await page.goto(`${server.url}/#/play/${title}?muted=1&${query}`);
  const state = () => page.evaluate(() => window.headwater.state());
  const until = async (event, holds, ...args) => {
    await page.waitForFunction(holds, args, { timeout: WAIT_MS, polling: 50 }).catch(async () => {
      const [now, log] = await page.evaluate(() => [window.headwater.state(), window.headwater.log().slice(-25)]);
      assert.fail(`timed out waiting for ${event}: ${JSON.stringify(now)}\n${log.map((l) => `${l.ms} ${l.kind} ${l.text}`).join('\n')}\n${faults}`);
    });
  };
  // A new page costs several times the processor time of another title in an open one.
  const replaceTitle = (next, nextQuery) => {
    faults.length = 0;
    const { player, ...options } = Object.fromEntries(new URLSearchParams(nextQuery));
    return page.evaluate((args) => { window.headwater.load(...args); }, [next, player, { muted: 1, ...options }]);
  };
  return { page, faults, state, until, replaceTitle };
}

export const begun = () => { const s = window.headwater.state(); return s.errors.length > 0 || (s.currentTime > 0.3 && s.width !== undefined); };
export const ended = () => { const s = window.headwater.state(); return s.errors.length > 0 || s.ended; };

export function assertFlawless({ faults }, state) {
  assert.deepEqual(state.errors, []);
  assert.deepEqual(faults, []);
  assert.equal(state.stalls, 0, 'stalls');
}
