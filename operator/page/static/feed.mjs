// Keeps asking the operator for what is newer than what we have, and says honestly how old that is.

const WAIT_S = 20;      // the operator answers that late at the latest
const LATE_MS = 30_000; // without any answer for so long, what is shown is called stale
const AT_MOST_EVERY_MS = 250;

// NodeTopologies, Fabrics, Gangs.
const several = (kind) => (kind.endsWith("y") ? `${kind.slice(0, -1)}ies` : `${kind}s`);

// The day, too, where it is not this one.
function clock(time) {
  const then = new Date(time), today = new Date().toDateString() === then.toDateString();
  return `${today ? "" : `${then.toLocaleDateString("sv-SE")} `}${then.toLocaleTimeString("en-GB")}`;
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export class Feed {
  constructor({ onDocument, onState }) {
    this.onDocument = onDocument;
    this.onState = onState;
    this.revision = "";
    this.heard = 0;     // when something was answered last
    this.trouble = "";  // why the last question was not
    this.sources = [];
    this.version = null; // of the operator that answered first
    setInterval(() => this.tell(), 1000);
  }

  async run() {
    let backOff = 0;
    for (;;) {
      if (document.hidden) await new Promise((seen) => document.addEventListener("visibilitychange", seen, { once: true }));
      const begun = performance.now();
      try {
        await this.ask();
        backOff = 0;
      } catch (error) {
        this.trouble = error.message;
        backOff = Math.min(backOff ? backOff * 2 : 500, 8000);
      }
      this.tell();
      await pause(Math.max(backOff, AT_MOST_EVERY_MS - (performance.now() - begun)));
    }
  }

  async ask() {
    const query = this.revision ? `?since=${encodeURIComponent(this.revision)}&wait=${WAIT_S}` : "";
    const answer = await fetch(`fabric/view.json${query}`, { cache: "no-store", signal: AbortSignal.timeout(LATE_MS) });
    if (!answer.ok) throw new Error((await answer.text()).trim() || `the operator answered ${answer.status}`);
    const version = answer.headers.get("Heddle-Version");
    this.version ??= version;
    if (version && version !== this.version) {
      // What we are is of another version than what answers now, and what that means by its numbers we do not know.
      location.reload();
      await new Promise(() => {});
    }
    const document = await answer.json();
    if (document.sources) this.sources = document.sources;
    this.onDocument(document);
    // Only now: what could not be shown is asked for again.
    this.revision = document.revision;
    this.heard = Date.now();
    this.trouble = "";
  }

  tell() {
    const unread = this.sources.filter((source) => source.error);
    if (!this.heard) {
      this.onState(this.trouble ? "reconnecting" : "waiting", this.trouble ? "no answer yet" : "connecting", this.trouble);
    } else if (Date.now() - this.heard > LATE_MS + 5000) {
      this.onState("stale", `stale since ${clock(this.heard)}`, this.trouble || "the operator does not answer; is kubectl port-forward still running?");
    } else if (this.trouble) {
      this.onState("reconnecting", `reconnecting, last heard ${clock(this.heard)}`, this.trouble);
    } else if (unread.length) {
      const since = unread.map((source) => source.since).filter(Boolean).sort()[0];
      const kinds = unread.map((source) => several(source.kind)).join(", ");
      this.onState("stale", since ? `${kinds} stale since ${clock(since)}` : `${kinds} not read`,
        unread.map((source) => `${source.kind}: ${source.error}`).join("\n"));
    } else {
      this.onState("live", "live", `last heard ${clock(this.heard)}`);
    }
  }
}

export async function about(kind, name) {
  const answer = await fetch(`fabric/about.json?${kind}=${encodeURIComponent(name)}`, { cache: "no-store" });
  if (!answer.ok) throw Object.assign(new Error((await answer.text()).trim()), { status: answer.status });
  return answer.json();
}
