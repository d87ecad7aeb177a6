// Read JSON as strictly as records need it: a name that occurs twice, a number beyond a double or
// invalid UTF-8 makes a record unreadable, where JSON.parse would choose one reading.

const TOKEN = /[\s\uFEFF]*(?:([{}[\],:])|("(?:[^"\\\u0000-\u001f]|\\.)*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null))/y;

/** Return the value in *bytes*, or undefined if they hold no readable JSON. */
export function readJson(bytes) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes); // drops a byte order mark
    const value = JSON.parse(text);
    return isAmbiguous(text) || hasInfinity(value) ? undefined : value;
  } catch {
    return undefined;
  }
}

function hasInfinity(value) {
  if (typeof value === "number") return !Number.isFinite(value);
  return value !== null && typeof value === "object" && Object.values(value).some(hasInfinity);
}

/** Whether an object in *text*, which is valid JSON, has a name twice. */
function isAmbiguous(text) {
  const open = [];
  let last = null;
  TOKEN.lastIndex = 0;
  for (let token; (token = TOKEN.exec(text)); ) {
    const [, mark, string] = token;
    if (mark === "{" || mark === "[") open.push(new Set());
    else if (mark === "}" || mark === "]") open.pop();
    else if (mark === ":") {
      const names = open.at(-1);
      if (names.has(last)) return true;
      names.add(last);
    }
    last = string === undefined ? null : JSON.parse(string);
  }
  return false;
}
