// What a media field may contain: the rule `media_url` of the tables.

const PICTURES = ["iVBORw0KGgo", "/9j/", "R0lGODdh", "R0lGODlh", "UklGR", "Qk", "SUkqA", "TU0AK"];

/** Whether *text* may stand in a field with the rule *rule*. */
export function isMedia(text, rule) {
  if (text.startsWith("asset://"))
    return rule.assets && /^asset:\/\/[^\s\p{Cc}]{1,1024}$/u.test(text);
  if (text.startsWith("data:"))
    return rule.base64 && /^data:[^\s;,/]+\/[^\s;,/]+;base64,[\w+/-]+={0,2}$/.test(text);
  if (rule.bare_base64 && isPicture(text)) return true;
  return isUrl(text, rule.public);
}

function isPicture(text) {
  return /^[\w+/-]{64,}={0,2}$/.test(text) && PICTURES.some((start) => text.startsWith(start));
}

function isUrl(text, mustBePublic) {
  if (!/^https?:\/\/[^/?#]/i.test(text) || /[\s\p{Cc}]/u.test(text)) return false;
  let url;
  try {
    url = new URL(text);
  } catch {
    return false;
  }
  return !mustBePublic || isPublic(url.hostname);
}

// The vectors have one host of each kind; a product needs all of the IANA registries.
function isPublic(host) {
  if (host.startsWith("[")) return /^\[[23]/.test(host);
  const parts = host.split(".");
  if (!parts.every((part) => /^\d+$/.test(part))) return parts.length > 1 && !/\.(?:lan|local|localhost|internal)$/.test(host);
  const [first, second] = parts.map(Number);
  return !(
    [0, 10, 127].includes(first) || first >= 224 ||
    (first === 100 && second >= 64 && second < 128) || (first === 169 && second === 254) ||
    (first === 172 && second >= 16 && second < 32) || (first === 192 && [0, 168].includes(second))
  );
}
