// What a failure or a status means for a create and for a poll.

const REFUSED = { 400: "refused", 401: "refused", 402: "refused", 403: "refused", 422: "refused", 429: "throttled" };

export const CREATE = {
  statuses: { ...REFUSED, 404: "refused", 405: "refused", 413: "refused", 415: "refused", 425: "refused" },
  redirect: "ambiguous",
  other: "ambiguous",
  lost: "ambiguous",
};
export const POLL = {
  statuses: { ...REFUSED, 404: "missing" },
  redirect: "violation",
  other: "retry",
  lost: "retry",
};

const LASTING = ["refused here", "over budget", "certificate", "private address"];

/** Return the verdict on a status. */
export function judgeStatus(table, status) {
  if (status in table.statuses) return table.statuses[status];
  if (status >= 200 && status < 300) return "answer";
  return status >= 300 && status < 400 ? table.redirect : table.other;
}

/** Return the verdict on a failure. */
export function judgeFailure(table, { sent, reason }) {
  if (sent) return table.lost;
  return LASTING.includes(reason) ? "not_sent" : "retry";
}

const MASK = (1n << 64n) - 1n;

/** Return the n-th fraction of a seed: splitmix64. */
export function fraction(seed, n) {
  let mixed = (BigInt(seed + n) * 0x9e3779b97f4a7c15n + 0x9e3779b97f4a7c15n) & MASK;
  mixed = ((mixed ^ (mixed >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  mixed = ((mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return Number((mixed ^ (mixed >> 31n)) >> 11n) / 2 ** 53;
}

/** Return the pause after the n-th failure in a row. */
export function backoff(seed, n) {
  return fraction(seed, n) * Math.min(20, 2 ** (n - 1));
}

/** Return what Retry-After says, in seconds: undefined without it, NaN if it cannot be read. */
export function retryAfter(headers, wall) {
  const of = (name) => headers.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value.trim());
  const asked = of("retry-after").map((value) => {
    if (/^\d+(?:\.\d+)?$/.test(value)) return Math.min(Math.ceil(+value), 9_999_999_999);
    const until = Date.parse(value);
    const from = of("date").length > 0 ? Date.parse(of("date")[0]) : wall * 1000;
    return until >= Math.floor(from / 1000) * 1000 ? Math.ceil((until - from) / 1000) : NaN;
  });
  return asked.length > 0 ? asked.reduce((one, other) => Math.max(one, other)) : undefined;
}

/** Return the refusal that a status stands for. */
export function refusal(status) {
  return { 401: "Unauthorized", 403: "Forbidden", 429: "RateLimited" }[status] ?? "Refused";
}
