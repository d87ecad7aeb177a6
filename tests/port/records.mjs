// Read the service's records: tolerant of everything but ids and the status of a result.

import { readJson } from "./json.mjs";
import { FAMILIES, familyOfModel } from "./tables.mjs";

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const text = (value) => (typeof value === "string" ? value : undefined);
const time = (value) =>
  typeof value === "number" && value >= 0 && value < Date.UTC(3000, 0) / 1000 ? value : undefined;
const amount = (value) => (typeof value === "number" && value >= 0 && value < 2 ** 63 ? value : undefined);
const address = (value) => (text(value) ? value : undefined);
// Python's form of JSON, with a space after each colon and comma.
const told = (value) =>
  value === null || value === undefined ? undefined
    : (text(value) ?? JSON.stringify(value, null, 1).replace(/\n\s*/g, " ").replace(/([{[]) | ([}\]])/g, "$1$2"));

/** Whether *id* is one that a task can have. */
export function isId(id) {
  const length = typeof id === "string" ? [...id].length : 0;
  return length >= 1 && length <= 1024 && !/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(id) && id !== "." && id !== "..";
}

/** Return the record in *bytes*, or undefined if they hold no object. */
export function readRecord(bytes) {
  const record = readJson(bytes);
  return isObject(record) ? record : undefined;
}

/** Return the task that a create has made, from a record with a valid id. */
export function taskOf(record, { family, input }, submitted) {
  const task = {
    id: record.id,
    family,
    model: text(record.model),
    requested_model: input.model,
    status: text(record.status),
    object: text(record.object),
    created: time(record.created),
    error: told(record.error),
    submitted_at: Math.round(submitted * 1e7) / 1e7,
  };
  const { id, model, requested_model, status, created, submitted_at } = task;
  const token = { muybridge_task: 1, id, family, model, requested_model, status, created, submitted_at };
  return { type: "Task", ...task, token };
}

/** Return the result in a record. */
export function resultOf(record, task) {
  const created = time(record.created);
  const family = FAMILIES.get(task.family) ?? familyOfModel(record.model);
  const kept = family?.retention.seconds ?? undefined;
  return {
    type: "Result",
    id: record.id,
    status: record.status,
    model: text(record.model),
    object: text(record.object),
    created,
    image_url: address(record.image_url),
    video_url: address(record.video_url),
    actual_duration: amount(record.actualDuration),
    total_tokens: amount(record.totalTokens),
    error: told(record.error),
    expires_at: created !== undefined && kept !== undefined ? created + kept : undefined,
  };
}

/** Return the message in the body of an error: without one, the body itself. */
export function messageOf(bytes) {
  const body = decoded(bytes).trim();
  const record = readRecord(bytes) ?? {};
  const { error } = record;
  const found = [isObject(error) ? error.message : error, record.message, record.msg, record.detail];
  return found.find((each) => typeof each === "string" && each !== "") ?? body.replace(/\s+/g, " ");
}

// What a task in a refusal looks like.

const FAILED = /^(?:error|fail|failure|throttled|rate_limited|bad_request|unauthorized|forbidden|not_found|resource_exhausted|invalid_argument|permission_denied|unauthenticated|failed_precondition|internal|unavailable|\d.*)$/i;
const AT_WORK = /^(?:queued|pending|in_progress|in_queue|processing|running|completed|succeeded|done|submitted|accepted|created|starting)$/i;
const isIdentifier = (value) => (typeof value === "string" && value !== "") || Number.isInteger(value);
const plain = (name) => name.toLowerCase().replace(/[^a-z]/g, "");

/** Return the id of a task that a refusal contains, at any depth, or undefined. */
export function taskInside(bytes) {
  const text = decoded(bytes);
  const value = parsed(text);
  if (value !== undefined) return inside(value);
  // A fragment: nobody knows what its other half says.
  return /"(?:status|object)"\s*:/.test(text) ? fragmentId(text) : undefined;
}

function inside(value) {
  if (typeof value === "string") {
    const inner = /[{[]/.test(value) ? parsed(value) : undefined;
    return inner === undefined ? undefined : inside(inner);
  }
  if (value === null || typeof value !== "object") return undefined;
  return (isObject(value) ? taskIn(value) : undefined) ?? first(Object.values(value), inside);
}

function taskIn(record) {
  const { id, status, object } = record;
  const state = status ?? record.state;
  const fails = typeof status === "number" || FAILED.test(status);
  if (isIdentifier(id) && (object !== undefined || status !== undefined) && !fails) return String(id);
  const ids = Object.entries(record).filter(([name, each]) => /id$/.test(plain(name)) && isIdentifier(each));
  const named = ids.find(([name, each]) => plain(name) === "taskid" && !(each < 1));
  const other = AT_WORK.test(state) ? ids.find(([name]) => plain(name) !== "id") : undefined;
  return named || other ? String((named ?? other)[1]) : undefined;
}

/** Return an id in a response that cannot be read, or has no valid id at its top level. */
export function candidate(bytes) {
  const value = readJson(bytes);
  return value === undefined ? fragmentId(decoded(bytes)) : idInside(value);
}

function idInside(value) {
  if (value === null || typeof value !== "object") return undefined;
  if (isIdentifier(value.id)) return Number.isInteger(value.id) || isId(value.id) ? String(value.id) : undefined;
  return first(Object.values(value), idInside);
}

function fragmentId(text) {
  const found = /"id"\s*:\s*(?:("(?:[^"\\]|\\.)+")|(\d+))/.exec(text);
  return found ? String(JSON.parse(found[1] ?? found[2])) : undefined;
}

function first(values, find) {
  for (const value of values) {
    const found = find(value);
    if (found !== undefined) return found;
  }
  return undefined;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Return the text of bytes in UTF-8 or UTF-16. */
function decoded(bytes) {
  const even = bytes.subarray(0, 64).filter((byte, index) => byte === 0 && index % 2 === 0).length;
  const odd = bytes.subarray(0, 64).filter((byte, index) => byte === 0 && index % 2 === 1).length;
  const encoding = odd > 8 ? "utf-16le" : even > 8 ? "utf-16be" : "utf-8";
  return new TextDecoder(encoding).decode(bytes);
}
