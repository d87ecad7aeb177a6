// Replay the vectors against the port: `node tests/port/replay.mjs`. Prints each case that fails, and
// how many passed. The port has no streams, downloads and budgets: of these the form is checked.

import { readdirSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

import { Create } from "./create.mjs";
import { CREATE, POLL, judgeFailure, judgeStatus } from "./delivery.mjs";
import { Poll } from "./poll.mjs";
import { RULES, check, encode, query } from "./requests.mjs";
import { violations } from "./schema.mjs";
import { FAMILIES, FOLDER, vectors } from "./tables.mjs";

const SERVICE = { base_url: "https://api.example.com" };
const OPERATIONS = {
  create: (...given) => new Create(...given),
  poll: (...given) => new Poll(...given),
  query: (...given) => new Poll(...given, { once: true }),
};

const DELIVERY = { create: CREATE, poll: POLL };

// Each returns true for a case that has passed, and undefined for one of a kind that the port lacks.
const REPLAYS = {
  families: ({ fields, relations }) =>
    expect("unknown rules", [...fields.flatMap(({ rules }) => rules), ...relations]
      .map(({ rule }) => rule).filter((rule) => !RULES.includes(rule)), []),
  rules: ({ name }) => (name === "variant" ? undefined : expect("rule", RULES.includes(name), true)),
  delivery: ({ kind, status, failure, verdict }) => {
    const table = DELIVERY[kind];
    if (table === undefined) return undefined;
    return expect("verdict", status ? judgeStatus(table, status) : judgeFailure(table, failure), verdict);
  },
  requests: ({ kind, input, request, without_effect, ...more }, { service }) => {
    if (kind === "result") return expect("request", query(more.id, service), request);
    if (kind !== "create") return undefined;
    const { withoutEffect } = check(FAMILIES.get(more.family), input, { unlisted: more.unlisted_model });
    expect("without_effect", withoutEffect, without_effect);
    return expect("request", encode({ input, ...more }, service), request);
  },
  "invalid-requests": ({ kind, family, input, problems }) => {
    if (kind !== "create") return undefined;
    const key = ({ field, rule }) => `${field} ${rule}`;
    const found = check(FAMILIES.get(family), input).problems;
    return expect("problems", found.map(key).sort(), problems.map(key).sort());
  },
  responses: ({ operation, now, response, events, outcome, again_at }, { service, start }) => {
    const make = OPERATIONS[operation.kind];
    if (make === undefined) return undefined;
    const made = make(operation, service, start);
    made.receive(withBytes(response), now);
    expect("events", made.events, events);
    return outcome ? expect("outcome", made.outcome, readable(outcome)) : expect("again_at", made.due, again_at);
  },
  operations: ({ operation, start, steps }, { service }) => {
    const make = OPERATIONS[operation.kind];
    if (make === undefined) return undefined;
    const made = make(operation, service, start);
    for (const { now, action, then } of steps) {
      const told = action.do === "end" ? { ...action, outcome: readable(action.outcome) } : action;
      expect(`action at ${now}`, made.next(now), told);
      if (then === undefined) continue;
      if (then.response) made.receive(withBytes(then.response), then.now);
      else made.fail(withBytes(then.failure), then.now);
      expect(`events at ${then.now}`, made.events, then.events);
    }
    return true;
  },
};

REPLAYS.intervals = ({ task, poll_interval, model, polled_at }, { start }) => {
  const poll = new Poll({ task, poll_interval, wait: Infinity }, SERVICE, start);
  const record = { id: task.id, status: "processing", model };
  const response = { status: 200, headers: [], bytes: Buffer.from(JSON.stringify(record)) };
  const times = polled_at.map(() => {
    const now = poll.due;
    poll.receive(response, now);
    return now;
  });
  return expect("polled_at", times, polled_at);
};

/** Return a response or failure with its bytes. */
function withBytes({ body, body_base64, partial, ...rest }) {
  return { ...rest, bytes: Buffer.from(body_base64 ?? body ?? partial ?? "", body_base64 ? "base64" : "utf8") };
}

/** Return an outcome whose token is parsed: its spaces do not matter. */
function readable(outcome) {
  return "token" in outcome ? { ...outcome, token: JSON.parse(outcome.token) } : outcome;
}

function expect(what, found, told) {
  if (!isDeepStrictEqual(rounded(found), rounded(told)))
    throw new Error(`${what}: expected ${JSON.stringify(told)}, found ${JSON.stringify(found)}`);
  return true;
}

/** Return *value* without what is not known, and with times to a millionth of a second. */
function rounded(value) {
  if (typeof value === "number") return Math.round(value * 1e6) / 1e6;
  if (Array.isArray(value)) return value.map(rounded);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).filter(([, each]) => each !== undefined).map(([name, each]) => [name, rounded(each)]));
}

const names = readdirSync(FOLDER).filter((name) => name.endsWith(".json")).map((name) => name.slice(0, -5));
let failed = 0;
for (const name of names) {
  const file = vectors(name);
  const report = (what, error) => {
    failed += 1;
    console.log(`failed: ${name}: ${what}\n  ${error}`);
  };
  for (const place of violations(file, vectors(`schema/${name}`))) report("its schema", place);
  let passed = 0;
  for (const each of file.cases) {
    try {
      if (REPLAYS[name]?.(each, file)) passed += 1;
    } catch (error) {
      report(each.name, error.message);
    }
  }
  console.log(`${name}: ${file.cases.length} of the right form, ${passed > 0 ? `${passed} passed` : "not ported"}`);
}
process.exitCode = failed > 0 ? 1 : 0;
