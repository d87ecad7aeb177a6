// Waiting for a result: nearly everything leads to another poll, at the family's pace.

import { POLL, backoff, fraction, judgeFailure, judgeStatus, refusal, retryAfter } from "./delivery.mjs";
import { messageOf, readRecord, resultOf } from "./records.mjs";
import { query } from "./requests.mjs";
import { FAMILIES, familyOfModel, pacing } from "./tables.mjs";

const API_TIMEOUT = 60;
const WAIT_TIMEOUT = 3600;
const LONGEST_WAIT = 120;
const GROWTH = 1.25;
const SPREAD = 0.25;
const SILENCE = 600;
const SILENT_TRIES = 3;
const NEWBORN = 60;
const UNREADABLE_TRIES = 3;
const QUERY_TRIES = 3;
const BARE_ID = { shortest: 5, longest: 30 };
const SLOWEST = { shortest: 30, longest: 60 };
const FINAL = ["completed", "failed", "cancelled"];

export class Poll {
  constructor(operation, service, { now, wall, seed }, { once = false } = {}) {
    const { task, wait = WAIT_TIMEOUT, poll_interval } = operation;
    this.request = query(task.id, service);
    Object.assign(this, { task, once, seed, began: now, heard: now, events: [], outcome: null });
    Object.assign(this, { failures: 0, unreadable: 0, incomplete: 0, status: undefined });
    const family = FAMILIES.get(task.family);
    this.pacing = poll_interval === undefined
      ? (family ? pacing(family, task.requested_model) : BARE_ID)
      : { shortest: poll_interval, longest: poll_interval };
    this.interval = this.pacing.shortest;
    this.wallAt = (moment) => wall + (moment - now);
    this.end = once ? Infinity : now + wait;
    this.due = now;
    if (once) return;
    if (task.submitted_at !== undefined) this.due = Math.max(now, now - (wall - task.submitted_at) + this.interval);
    if (task.next_poll_at !== undefined) {
      const permitted = Math.min(task.next_poll_at - wall, Math.max(this.pacing.longest, LONGEST_WAIT));
      this.due = Math.max(this.due, now + permitted);
    }
  }

  next(now) {
    if (this.outcome === null && now >= this.end) this.#timeOut();
    if (this.outcome) return { do: "end", outcome: this.outcome };
    if (now < this.due) return { do: "wait", until: Math.min(this.due, this.end) };
    return { do: "send", request: this.request, deadline: Math.min(now + API_TIMEOUT, this.end) };
  }

  receive({ status, headers, bytes }, now) {
    this.events = [];
    const asked = () => retryAfter(headers, this.wallAt(now));
    switch (judgeStatus(POLL, status)) {
      case "answer":
        return this.#answer(status, bytes, now);
      case "violation":
        return this.#settle("ProtocolViolation", { status });
      case "refused":
        return this.#settle(refusal(status), { status, message: messageOf(bytes) });
      case "missing":
        return this.#missing(status, bytes, now);
      case "throttled":
        this.heard = now; // a service that answers 429 is not silent
        return this.#again(now, { asked: asked(), throttled: true });
      default:
        return this.#again(now, { asked: asked() });
    }
  }

  fail(failure, now) {
    this.events = [];
    if (judgeFailure(POLL, failure) === "not_sent") this.#settle("ServiceUnreachable", { silent: now - this.heard });
    else this.#again(now);
  }

  #answer(status, bytes, now) {
    const record = readRecord(bytes);
    if (typeof record?.id !== "string" || typeof record.status !== "string") {
      this.unreadable += 1;
      if (this.unreadable > UNREADABLE_TRIES || this.#isLastTry) return this.#settle("ProtocolViolation", { status });
      return this.#again(now);
    }
    const isOver = FINAL.includes(this.status) && record.status !== this.status;
    if (record.id !== this.task.id || isOver) return this.#settle("ProtocolViolation", { status });
    const result = resultOf(record, this.task);
    this.events.push({ type: "Polled", status: result.status, changed: result.status !== this.status });
    this.#learn(record);
    Object.assign(this, { status: result.status, heard: now, failures: 0, unreadable: 0 });
    if (this.once) this.outcome = result;
    else if (["failed", "cancelled"].includes(result.status)) this.#settle("TaskFailed", { result });
    else if (result.status !== "completed") {
      const interval = this.#intervalAt(now);
      this.due = now + interval;
      this.interval = Math.min(this.pacing.longest, interval * GROWTH);
    } else if (result.image_url || result.video_url) this.outcome = result;
    else if (this.incomplete === UNREADABLE_TRIES) this.#settle("ResultIncomplete");
    else {
      this.incomplete += 1;
      this.due = now + this.interval;
    }
  }

  /** A bare id takes the pace of the model that its record names. */
  #learn({ model }) {
    const family = this.pacing === BARE_ID ? familyOfModel(model) : undefined;
    if (family === undefined) return;
    this.pacing = pacing(family, model);
    this.interval = this.failures > 0 ? Math.max(this.interval, this.pacing.shortest) : this.pacing.shortest;
  }

  #missing(status, bytes, now) {
    const age = this.wallAt(now) - this.task.submitted_at;
    if (age <= NEWBORN && !this.#isLastTry) return this.#again(now);
    const { retention } = FAMILIES.get(this.task.family) ?? {};
    const isGone = retention?.record_too && age >= retention.seconds;
    this.#settle(isGone ? "ResultExpired" : "TaskNotFound", { status, message: messageOf(bytes) });
  }

  #again(now, { asked, throttled = false } = {}) {
    const silent = now - this.heard;
    if (this.#isLastTry) return this.#settle("ServiceUnreachable", { silent });
    this.failures += 1;
    let { longest } = this.pacing;
    let interval = this.#intervalAt(now);
    if (this.pacing === BARE_ID && !this.once) {
      interval = Math.max(this.interval, SLOWEST.shortest);
      longest = SLOWEST.longest;
    }
    const spread = interval * (1 + SPREAD * fraction(this.seed, this.failures));
    const delay = asked >= 0 // neither missing nor unreadable
      ? Math.max(interval, Math.min(asked, LONGEST_WAIT))
      : Math.max(spread, backoff(this.seed, this.failures));
    this.due = now + delay;
    this.interval = Math.min(longest, interval * GROWTH);
    if (this.due >= this.end) return; // there is no retry to announce
    if (throttled) this.events.push({ type: "Throttled", what: "poll", delay });
    else if (silent >= SILENCE && this.failures >= SILENT_TRIES) this.events.push({ type: "ServiceSilent", silent, delay });
    else this.events.push({ type: "WillRetry", what: "poll", delay, attempt: this.failures });
  }

  /** A poll that was late, or answered slowly, is followed by no sooner ones than one in time. */
  #intervalAt(now) {
    return Math.min(this.pacing.longest, Math.max(this.interval, now - this.due));
  }

  get #isLastTry() {
    return this.once && this.failures + 1 >= QUERY_TRIES;
  }

  #timeOut() {
    this.#settle("WaitTimeout", {
      status: this.status,
      waited: this.end - this.began,
      silent: this.failures > 0 ? this.end - this.heard : undefined,
      next_poll_at: this.wallAt(this.due),
    });
  }

  #settle(type, facts = {}) {
    this.outcome = { type, ...facts, task_id: this.task.id };
  }
}
