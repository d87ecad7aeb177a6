// Read the service's records: tolerant of everything but ids and the status of a result.

import { readJson } from "./json.mjs";
import { FAMILIES, familyOfModel } from "./tables.mjs";

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const text = (value) => (typeof value === "string" ? value : undefined);
const time = (value) =>
  typeof value === "number" && value >= 0 && value < Date.UTC(3000, 0) / 1000 ? value : undefined;
const amount = (value) => (typeof value === "number" && value >= 0 && value < 2 ** 63 ? value : undefined);
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
  const url = text(record.image_url) || text(record.video_url);
  const kept = family?.retention.seconds ?? undefined;
  return {
    type: "Result",
    id: record.id,
    status: record.status,
    model: text(record.model),
    object: text(record.object),
    created,
    image_url: text(record.image_url),
    video_url: text(record.video_url),
    actual_duration: amount(record.actualDuration),
    total_tokens: amount(record.totalTokens),
    error: told(record.error),
    expires_at: record.status === "completed" && url && created !== undefined && kept !== undefined ? created + kept : undefined,
  };
}

/** Return the message in the body of an error: without one, the body itself. */
export function messageOf(bytes) {
  const body = decoded(bytes).trim();
  if (body.startsWith("<")) return ""; // a page
  const value = readJson(bytes);
  const only = Array.isArray(value) && value.length === 1 ? value[0] : value;
  if (typeof only === "string") return only;
  const record = isObject(only) ? only : {};
  const { error } = record;
  const found = [isObject(error) ? error.message : error, record.message, record.msg, record.detail];
  return found.find((each) => typeof each === "string" && each !== "") ?? body.replace(/\s+/g, " ");
}

// What a task in a refusal looks like, and which id an ambiguous response has.

const words = (text) => new Set(text.trim().split(/\s+/));
const AT_WORK = words(`
  queued inqueue enqueued queueing queuing pending waiting scheduled created submitted accepted
  received notstarted starting started initializing preparing processing inprogress running generating
  rendering executing working dreaming completed complete succeeded succeed success successful finished
  done ready
`);
const SAID_BY_ERRORS = words(`
  cancelled unknown invalidargument deadlineexceeded notfound alreadyexists permissiondenied
  unauthenticated resourceexhausted failedprecondition aborted outofrange unimplemented internal
  unavailable dataloss error fail failure throttled limited ratelimited ratelimitexceeded rejected blocked
  badrequest unauthorized paymentrequired forbidden methodnotallowed payloadtoolarge contenttoolarge
  requestentitytoolarge unsupportedmediatype unprocessableentity unprocessablecontent tooearly
  toomanyrequests
`);
const plain = (name) => name.toLowerCase().replace(/[ _-]/g, "");
const isIdName = (name) => /(?:id|identifier)$/i.test(name) && !/(?:valid|paid|void|pid|grid)$/i.test(name);
const isStateName = (name) => /(?:status|state|phase|stage)$/i.test(name);
const isTaskId = ([name]) => name === "id" || name === "taskid";
const isState = (value) =>
  typeof value === "string" ? !SAID_BY_ERRORS.has(plain(value)) && !/^\d/.test(value)
    : typeof value !== "number" && typeof value !== "boolean";
const isAtWork = (value) =>
  isObject(value) ? Object.values(value).some(isAtWork)
    : typeof value === "string" && AT_WORK.has(plain(value).replace(/^(?:task|job|state|status)+/, ""));

/** Return the id of a task that a refusal contains, at any depth, or undefined. */
export function taskInside(bytes) {
  return taskInText(decoded(bytes));
}

/** Return the id of the task in an ambiguous response, or else any id in it, or undefined. */
export function candidate(bytes) {
  const text = decoded(bytes);
  const value = parsed(text);
  const ids = value === undefined ? fragments(text).ids : records(value).flatMap(idsOf);
  const found = taskInText(text) ?? ids.find(isTaskId)?.[1];
  return found !== undefined && isPrintable(found) ? found : undefined;
}

function isPrintable(id) {
  return !/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(id) && id !== "." && id !== "..";
}

function taskInText(text, layers = 8) {
  const value = parsed(text);
  const found = value === undefined ? taskIn(fragments(text)) : first(records(value), taskOfRecord);
  if (found !== undefined || layers === 1) return found;
  const texts = value === undefined
    ? [text.replaceAll('\\"', '"').replaceAll("\\\\", "\\")].filter((inner) => inner !== text)
    : stringsIn(value).filter((inner) => inner.includes('"'));
  return first(texts, (inner) => taskInText(inner, layers - 1));
}

function taskOfRecord(record) {
  const entries = Object.entries(record);
  const progresses = entries.some(([name, value]) => isStateName(name) && isAtWork(value));
  const stateful = entries.some(([name, value]) => /^(?:status|object)$/i.test(name) && isState(value));
  const found = taskIn({ ids: idsOf(record), stateful, progresses });
  if (found !== undefined || !progresses) return found;
  const within = entries.filter(([name, value]) => isObject(value) && !/^error/i.test(name));
  return within.flatMap(([, value]) => idsOf(value)).find(isTaskId)?.[1];
}

function taskIn({ ids, stateful, progresses }) {
  const named = ids.find(([name, id]) => (name === "taskid" && !/^(?:0$|-)/.test(id)) || (isTaskId([name]) && (stateful || progresses)));
  if (named || !progresses) return named?.[1];
  return (ids.find(([name]) => !/^(?:request|trace|correlation)/.test(name)) ?? ids[0])?.[1];
}

function idsOf(record) {
  return Object.entries(record)
    .filter(([name, value]) => isIdName(name) && (typeof value === "string" ? value !== "" : Number.isInteger(value)))
    .map(([name, value]) => [plain(name), String(value)]);
}

/** Return the objects in *value*, outer ones first. */
function records(value) {
  const found = [];
  for (let level = [value]; level.length > 0; ) {
    const inner = level.filter((each) => each !== null && typeof each === "object");
    found.push(...inner.filter(isObject));
    level = inner.flatMap((each) => Object.values(each));
  }
  return found;
}

function stringsIn(value) {
  if (typeof value === "string") return [value];
  return value !== null && typeof value === "object" ? Object.values(value).flatMap(stringsIn) : [];
}

/** Return the ids and states in a text that is not JSON: ids of outer objects first. */
function fragments(text) {
  const blank = text.replace(/"(?:[^"\\]|\\.)*"/gs, (string) => " ".repeat(string.length));
  const depth = (at) => [...blank.slice(0, at)].reduce((sum, mark) => sum + ("{[".includes(mark) ? 1 : "}]".includes(mark) ? -1 : 0), 0);
  const pairs = [...text.matchAll(/"([\w -]{1,70})"\s*:\s*(?:("(?:[^"\\]|\\.)*")|(-?\d+)(?=[\s,}\]])|(null|[{[]))/gs)];
  const value = ([, , string, number]) => (string === undefined ? number : parsed(string));
  const ids = pairs
    .filter((pair) => isIdName(pair[1]) && value(pair))
    .map((pair) => [plain(pair[1]), value(pair), depth(pair.index)])
    .sort((one, other) => one[2] - other[2]);
  const states = pairs.filter(([, , , number]) => number === undefined).map((pair) => [pair[1], value(pair)]);
  return {
    ids,
    stateful: states.some(([name, state]) => /^(?:status|object)$/i.test(name) && isState(state)),
    progresses: states.some(([name, state]) => (isStateName(name) || /object$/i.test(name)) && isAtWork(state)),
  };
}

function first(values, find) {
  for (const value of values) {
    const found = find(value);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Return the value of a JSON text, or undefined if it is none that can be read. */
function parsed(text) {
  return readJson(Buffer.from(text));
}

/** Return the text of bytes in UTF-8 or UTF-16. */
function decoded(bytes) {
  const zeros = [0, 1, 2, 3].map((at) => bytes[at] === 0);
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder("utf-16be").decode(bytes);
  if (zeros[1] && !zeros[0]) return new TextDecoder("utf-16le").decode(bytes);
  if (zeros[0] && !zeros[1]) return new TextDecoder("utf-16be").decode(bytes);
  return new TextDecoder().decode(bytes);
}
