// A create: it costs money, so it is sent again only if it certainly did nothing.

import { CREATE, backoff, judgeFailure, judgeStatus, refusal, retryAfter } from "./delivery.mjs";
import { candidate, isId, messageOf, readRecord, taskInside, taskOf } from "./records.mjs";
import { encode } from "./requests.mjs";

const UNSENT_TRIES = 3;
const THROTTLED_TRIES = 4;
const LONGEST_WAIT = 120;
const API_TIMEOUT = 60;
const CREATE_DEADLINE = 300;

export class Create {
  constructor(operation, service, { now, wall, seed }) {
    this.request = encode(operation, service);
    Object.assign(this, { operation, seed, due: now, unsent: 0, throttled: 0, events: [], outcome: null });
    this.wallAt = (moment) => wall + (moment - now);
    this.lastRetry = now + CREATE_DEADLINE;
  }

  next(now) {
    if (this.outcome) return { do: "end", outcome: this.outcome };
    if (now < this.due) return { do: "wait", until: this.due };
    return { do: "send", request: this.request, deadline: now + API_TIMEOUT };
  }

  receive({ status, headers, bytes }, now) {
    this.events = [];
    const verdict = judgeStatus(CREATE, status);
    switch (verdict) {
      case "answer":
        return this.#answer(status, bytes, now);
      case "ambiguous":
        return this.#ambiguous(status, candidate(bytes));
      case "throttled":
      case "refused": {
        // A refusal with a task contradicts itself.
        if (taskInside(bytes) !== undefined) this.#ambiguous(status, candidate(bytes));
        else if (verdict === "throttled") this.#throttle(status, headers, bytes, now);
        else this.#refuse(status, bytes);
      }
    }
  }

  fail(failure, now) {
    this.events = [];
    const verdict = judgeFailure(CREATE, failure);
    if (verdict === "ambiguous") return this.#ambiguous(failure.status, candidate(failure.bytes));
    this.unsent += 1;
    const delay = backoff(this.seed, this.unsent);
    if (verdict === "not_sent" || this.unsent === UNSENT_TRIES || now + delay > this.lastRetry) {
      this.outcome = { type: "NotSent", attempts: this.unsent };
      return;
    }
    this.events.push({ type: "WillRetry", what: "create", delay, attempt: this.unsent });
    this.due = now + delay;
  }

  #answer(status, bytes, now) {
    const record = readRecord(bytes);
    if (isId(record?.id)) {
      this.outcome = taskOf(record, this.operation, this.wallAt(now));
      this.events.push({ type: "Submitted", task_id: record.id });
    } else if (record?.status === "failed" && !record.id) {
      this.outcome = { type: "Refused", status, message: messageOf(bytes) };
    } else this.#ambiguous(status, candidate(bytes));
  }

  #throttle(status, headers, bytes, now) {
    this.throttled += 1;
    const asked = retryAfter(headers, this.wallAt(now));
    const delay = Math.max(asked ?? 0, asked === undefined ? backoff(this.seed, this.throttled) : 0);
    // A Retry-After that cannot be read is NaN, and no comparison with it holds.
    if (this.throttled < THROTTLED_TRIES && delay <= LONGEST_WAIT && now + delay <= this.lastRetry) {
      this.events.push({ type: "Throttled", what: "create", delay });
      this.due = now + delay;
    } else {
      this.#refuse(status, bytes);
      if (asked >= 0) this.outcome.retry_after = asked;
    }
  }

  #refuse(status, bytes) {
    this.outcome = { type: refusal(status), status, message: messageOf(bytes) };
  }

  #ambiguous(status, candidate_id) {
    this.outcome = { type: "CreateAmbiguous", status, candidate_id };
    this.events.push({ type: "Ambiguous" });
  }
}
