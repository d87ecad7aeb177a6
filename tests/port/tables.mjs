// The tables that the vectors contain, by name.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { VECTORS } = process.env;
export const FOLDER = VECTORS ? pathToFileURL(`${VECTORS}/`) : new URL("../vectors/data/", import.meta.url);

/** Return a file of vectors. */
export function vectors(name) {
  return JSON.parse(readFileSync(new URL(`${name}.json`, FOLDER), "utf8"));
}

export const FAMILIES = new Map(vectors("families").cases.map((family) => [family.name, family]));

/** Return the family of a task of which only the model is known. */
export function familyOfModel(model) {
  if (typeof model !== "string") return undefined;
  const all = [...FAMILIES.values()];
  return (
    all.find((family) => family.models.some((listed) => listed.name === model)) ??
    all.find(({ name }) => model === name || model.startsWith(`${name}-`) || model.startsWith(`${name}_`))
  );
}

/** Return the shortest and longest poll interval of a model, or of a family. */
export function pacing(family, model) {
  return (family.models.find(({ name }) => name === model) ?? family).pacing;
}
