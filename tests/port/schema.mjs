// JSON Schema 2020-12, as far as the schemas of the vectors use it. An unknown keyword throws: a
// part of a schema that nobody checks would look like one that is satisfied.

import { isDeepStrictEqual } from "node:util";

const ANNOTATIONS = new Set(["$schema", "$defs", "title", "description", "format", "contentEncoding", "then"]);

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const TYPES = {
  object: isObject,
  array: Array.isArray,
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: Number.isInteger,
  boolean: (value) => typeof value === "boolean",
  null: (value) => value === null,
};

// Each returns whether a value satisfies a keyword: most say nothing about values of other types.
const KEYWORDS = {
  type: (value, types) => [types].flat().some((type) => TYPES[type](value)),
  const: isDeepStrictEqual,
  enum: (value, options) => options.some((option) => isDeepStrictEqual(value, option)),
  minLength: (value, least) => typeof value !== "string" || [...value].length >= least,
  pattern: (value, pattern) => typeof value !== "string" || new RegExp(pattern, "u").test(value),
  minimum: (value, least) => typeof value !== "number" || value >= least,
  maximum: (value, most) => typeof value !== "number" || value <= most,
  minItems: (value, least) => !Array.isArray(value) || value.length >= least,
  minProperties: (value, least) => !isObject(value) || Object.keys(value).length >= least,
  maxProperties: (value, most) => !isObject(value) || Object.keys(value).length <= most,
  required: (value, names) => !isObject(value) || names.every((name) => name in value),
  dependentRequired: (value, needed) =>
    !isObject(value) || Object.entries(needed).every(([name, all]) => !(name in value) || all.every((one) => one in value)),
  properties: (value, schemas, inner) =>
    !isObject(value) || Object.entries(schemas).every(([name, schema]) => !(name in value) || inner(value[name], schema, name)),
  additionalProperties: (value, schema, inner, { properties = {} }) =>
    !isObject(value) || Object.entries(value).every(([name, each]) => name in properties || inner(each, schema, name)),
  prefixItems: (value, schemas, inner) =>
    !Array.isArray(value) || schemas.every((schema, at) => at >= value.length || inner(value[at], schema, at)),
  items: (value, schema, inner, { prefixItems = [] }) =>
    !Array.isArray(value) || value.every((each, at) => at < prefixItems.length || inner(each, schema, at)),
  allOf: (value, schemas, inner) => schemas.every((schema) => inner(value, schema)),
  anyOf: (value, schemas, inner) => schemas.some((schema) => inner(value, schema)),
  oneOf: (value, schemas, inner) => schemas.filter((schema) => inner(value, schema)).length === 1,
  if: (value, schema, inner, { then = true }) => !inner(value, schema) || inner(value, then),
};

/** Return the places in *value* that do not satisfy *root*; the first is the innermost. */
export function violations(value, root) {
  const found = [];
  const follow = (reference) =>
    reference.split("/").slice(1).reduce((schema, name) => schema[name], root);

  function satisfies(value, schema, place) {
    if (typeof schema === "boolean") return schema;
    return Object.entries(schema).every(([keyword, argument]) => {
      if (ANNOTATIONS.has(keyword)) return true;
      const inner = (each, other, at) => satisfies(each, other, at === undefined ? place : `${place}/${at}`);
      if (keyword === "$ref") return inner(value, follow(argument));
      if (!(keyword in KEYWORDS)) throw new Error(`the keyword ${keyword} is not implemented`);
      const holds = KEYWORDS[keyword](value, argument, inner, schema);
      if (!holds) found.push(`${place}: ${keyword}`);
      return holds;
    });
  }

  return satisfies(value, root, "") ? [] : found;
}
