// Check and encode create requests: the tables say the limits, this file what each rule means.

import { isMedia } from "./media_urls.mjs";
import { FAMILIES } from "./tables.mjs";

const TYPES = {
  string: (value) => typeof value === "string",
  integer: Number.isInteger,
  number: (value) => typeof value === "number",
  boolean: (value) => typeof value === "boolean",
  "array of string": (value) => Array.isArray(value) && value.every(TYPES.string),
};

// Each says whether a value of the right type satisfies a rule.
const VALUES = {
  one_of: (value, { options, ignore_case }) =>
    options.includes(value) ||
    (ignore_case && options.some((option) => option.toLowerCase() === value.toLowerCase())),
  between: (value, { low, high, also }) => (low <= value && value <= high) || also.includes(value),
  text: (value, { limit }) => value.trim() !== "" && (limit === null || [...value].length <= limit),
  model_name: (value) => value.trim() !== "" && !/[\p{Cc}\u2028\u2029]/u.test(value),
  items: (value, { low, high }) => low <= value.length && value.length <= high,
  media_url: (value, rule) => [value].flat().every((item) => isMedia(item, rule)),
  not_set: () => false,
  pixel_size(value, rule) {
    const found = /^([1-9]\d*)x([1-9]\d*)$/.exec(value);
    if (found === null) return false;
    const [short, long] = [+found[1], +found[2]].sort((one, other) => one - other);
    const pixels = short * long;
    return (
      long <= rule.longest_edge &&
      [short, long].every((edge) => edge % rule.multiple_of === 0) &&
      long <= rule.longest_ratio * short &&
      rule.least_pixels <= pixels &&
      pixels <= rule.most_pixels
    );
  },
};

// Each yields the fields that break a relation. `sent` has fields under their new names.
const RELATIONS = {
  *requires({ field, other }, sent) {
    if (field in sent && !(other in sent)) yield field;
  },
  *only_with({ field, value, other, options }, sent) {
    if (sent[field] === value && other in sent && !options.includes(sent[other])) yield field;
  },
  *fewer_with({ field, high, other }, sent) {
    if (other in sent && Array.isArray(sent[field]) && sent[field].length > high) yield field;
  },
  *excludes({ these, those }, sent) {
    if (those.some((other) => other in sent)) yield* these.filter((one) => one in sent);
  },
  *alternatives({ one, other }, sent) {
    if (one in sent && other in sent) yield other;
  },
  *required_for_model({ field, models }, sent) {
    if (models.includes(sent.model) && (!sent[field] || sent[field].length === 0)) yield field;
  },
};

export const RULES = [...Object.keys(VALUES), ...Object.keys(RELATIONS), "type", "required", "unknown_field", "alias"];

/** Return the problems of a request, and the fields that have no effect in it. */
export function check(family, input, { unlisted = false } = {}) {
  const problems = [];
  const add = (field, rule) => problems.push({ field, rule });
  const fields = new Map(family.fields.map((field) => [field.name, field]));

  // A legacy name is replaced by the new one, and its problems are reported under the one given.
  const sent = { ...input };
  const given = {};
  for (const { legacy, field } of family.aliases) {
    if (!(legacy in sent)) continue;
    if (!(field in sent)) [sent[field], given[field]] = [sent[legacy], legacy];
    else if (sent[legacy] !== sent[field]) add(legacy, "alias");
    delete sent[legacy];
  }

  const model = unlisted ? undefined : family.models.find(({ name }) => name === input.model);
  const isSet = (value) => value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0);
  const withoutEffect = family.ineffective
    .filter(({ field, other, models }) =>
      field in sent && (other === null ? models.includes(model?.name) : isSet(sent[other])))
    .map(({ field }) => field);

  for (const [name, value] of Object.entries(sent)) {
    const field = fields.get(name);
    if (field === undefined) {
      if (family.body_shown) add(name, "unknown_field");
      continue;
    }
    const limits = (!withoutEffect.includes(name) && model?.limits[name]) || field.rules;
    const broken = !TYPES[field.type](value)
      ? "type"
      : limits.find((rule) => !(unlisted && name === "model") && !VALUES[rule.rule](value, rule))?.rule;
    if (broken) add(given[name] ?? name, broken);
  }
  for (const field of family.fields)
    if (field.required && !(field.name in sent)) add(field.name, "required");

  const effective = Object.fromEntries(
    Object.entries(sent).filter(([name]) => !withoutEffect.includes(name)));
  for (const relation of family.relations)
    for (const field of RELATIONS[relation.rule](relation, effective))
      add(given[field] ?? field, relation.rule);
  return { problems, withoutEffect, sent };
}

const ACCEPT = [["Accept", "application/json"], ["Accept-Encoding", "gzip"], ["User-Agent", "muybridge"]];

/** Return the request for a create whose input has no problem. */
export function encode({ family: name, input, extra = {}, unlisted_model: unlisted }, service) {
  const family = FAMILIES.get(name);
  const { problems, sent } = check(family, input, { unlisted });
  if (problems.length > 0) throw new Error(JSON.stringify(problems));
  const ordered = family.fields.filter((field) => field.name in sent).map((field) => [field.name, sent[field.name]]);
  return {
    method: "POST",
    url: service.base_url + family.create_path,
    headers: [...ACCEPT, ["Content-Type", "application/json"]],
    body: JSON.stringify({ ...Object.fromEntries(ordered), ...extra }),
    authorized: true,
    paid: true,
  };
}

/** Return the request that asks for a task. */
export function query(id, service) {
  return {
    method: "GET",
    url: `${service.base_url}/v1/result/${encodeId(id)}`,
    headers: ACCEPT,
    authorized: true,
    paid: false,
  };
}

function encodeId(id) {
  return encodeURIComponent(id).replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
}
