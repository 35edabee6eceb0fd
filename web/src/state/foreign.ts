// foreign: links of Compiler Explorer's page, which have the whole state after the '#', in one of three encodings.
//
//   #%7B%22version%22:4,"content":…      a layout as percent-encoded JSON
//   #g:!((g:!((h:codeEditor,i:(…         rison of the layout with its usual keys and values cut to one character
//   #z:OYLghAFBqd5Q…                     that, compressed as lz-string does, in base64
//
// The server interprets the layout: it takes it at /clientstate/ and answers with an address of our page.

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const NEST_MAX = 60;
const SIZE_MAX = 1 << 20;

// ---- rison

/** Reads a value of rison from the start of the text. */
class Rison {
  private at = 0;

  constructor(private readonly text: string) {}

  whole(): Json {
    const value = this.value(0);
    if (this.at !== this.text.length) throw new SyntaxError("text after the rison");
    return value;
  }

  private take(what: string): boolean {
    const found = this.text.startsWith(what, this.at);
    if (found) this.at += what.length;
    return found;
  }

  private value(depth: number): Json {
    if (depth > NEST_MAX) throw new SyntaxError("nested too deep");
    if (this.take("!(")) return this.list(depth);
    if (this.take("(")) return this.object(depth);
    if (this.take("'")) return this.string();
    if (this.take("!t")) return true;
    if (this.take("!f")) return false;
    if (this.take("!n")) return null;
    const word = /[^ '!:(),*@$]+/y;
    word.lastIndex = this.at;
    const found = word.exec(this.text)?.[0];
    if (found === undefined) throw new SyntaxError("no value");
    this.at += found.length;
    return /^-?(0|[1-9]\d*)(\.\d+)?(e-?\d+)?$/.test(found) ? Number(found) : found;
  }

  private list(depth: number): Json {
    const list: Json[] = [];
    while (!this.take(")")) {
      if (list.length > 0 && !this.take(",")) throw new SyntaxError("no comma");
      list.push(this.value(depth + 1));
    }
    return list;
  }

  private object(depth: number): Json {
    const pairs: [string, Json][] = [];
    while (!this.take(")")) {
      if (pairs.length > 0 && !this.take(",")) throw new SyntaxError("no comma");
      const key = String(this.value(depth + 1));
      if (!this.take(":")) throw new SyntaxError("no colon");
      pairs.push([key, this.value(depth + 1)]);
    }
    return Object.fromEntries(pairs);
  }

  private string(): string {
    let out = "";
    for (;;) {
      const c = this.text[this.at++];
      if (c === undefined) throw new SyntaxError("a string without an end");
      if (c === "'") return out;
      out += c === "!" ? (this.text[this.at++] ?? "") : c;
    }
  }
}

/** Reads an object without its own parentheses. */
function readRison(text: string): Json {
  return new Rison(`(${text})`).whole();
}

// ---- the short layout

const KEYS = (
  "settings hasHeaders constrainDragToHeader selectionEnabled dimensions borderWidth minItemHeight minItemWidth headerHeight " +
  "dragProxyWidth dragProxyHeight labels close maximise minimise popout content componentName componentState id width type " +
  "height isClosable title popoutWholeStack openPopouts parentId activeItemIndex reorderEnabled borderGrabWidth"
).split(" ");
const VALUES: Json[] = [true, false, "row", "column", "stack", "component", "close", "maximise", "minimise", "open in new window"];

/** One character means a common word; "___x" means the character x itself. */
function lengthen(value: Json): Json {
  if (Array.isArray(value)) return value.map(lengthen);
  if (typeof value === "string") {
    if (value.length === 1) return VALUES[parseInt(value, 36)] ?? value;
    return /^___.$/.test(value) ? value.slice(3) : value;
  }
  if (typeof value !== "object" || value === null) return value;
  const long = (key: string) =>
    key.length === 1 ? (KEYS[parseInt(key, 36)] ?? key) : /^___.$/.test(key) ? key.slice(3) : key;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [long(k), lengthen(v)]));
}

// ---- lz-string

const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Six bits per character, the highest first; numbers in the stream have their lowest bit first. */
class Bits {
  private at = 0;

  constructor(private readonly text: string) {}

  read(n: number): number {
    let value = 0;
    for (let i = 0; i < n; i++, this.at++) {
      const six = BASE64.indexOf(this.text[Math.floor(this.at / 6)] ?? "=");
      if (six < 0) throw new SyntaxError("the compressed text ends early");
      value |= ((six >> (5 - (this.at % 6))) & 1) << i;
    }
    return value;
  }
}

/** LZ78 with codes that grow: 0 and 1 announce a new character of 8 or 16 bits, 2 is the end. */
function decompress(packed: string): string {
  const bits = new Bits(packed.replace(/=+$/, ""));
  const words: string[] = ["", "", ""];
  let width = 2;
  let out = "";
  let previous = "";
  for (;;) {
    let code = bits.read(width);
    if (code === 2) return out;
    if (code < 2) {
      words.push(String.fromCharCode(bits.read(code === 0 ? 8 : 16)));
      code = words.length - 1;
      // the first character takes no further entry, so the code's width follows the number of entries alone
    }
    const word = words[code] ?? (code === words.length ? previous + previous.charAt(0) : undefined);
    if (word === undefined || word === "") throw new SyntaxError("the compressed text is damaged");
    if (previous !== "") words.push(previous + word.charAt(0));
    out += word;
    if (out.length > SIZE_MAX) throw new SyntaxError("the state is too large");
    previous = word;
    while (words.length >= 2 ** width) width++;
  }
}

// ---- links

function readLayout(text: string): Json {
  const plain = decodeURIComponent(text.replaceAll("+", "%20"));
  if (plain.startsWith("{")) return JSON.parse(decodeURIComponent(text)) as Json;
  const state = readRison(plain);
  const packed = (state as { [key: string]: Json })["z"];
  return lengthen(typeof packed === "string" ? readRison(decompress(packed)) : state);
}

function toBase64(text: string): string {
  let binary = "";
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** The address at which the server converts such a link into ours; throws when it is damaged. */
export function foreignAddress(hash: string): string {
  const text = hash.replace(/^#/, "");
  return `/clientstate/${encodeURIComponent(toBase64(JSON.stringify(readLayout(text))))}`;
}
