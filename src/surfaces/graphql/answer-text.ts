// The JSON of results. A part of one may be a text already: it is put in as it is.
import { randomUUID } from 'node:crypto';

/** Stands in a text until what it stands for is put there. Nobody outside knows it, so no data can hold it. */
const mark = randomUUID();

/** What `stringify` meets on its way. */
let met: JsonText[] | undefined;

/** JSON in the place of what it says. Whatever else makes JSON of it gets the same. */
export class JsonText {
  /** Of the text in UTF-8. */
  readonly byteLength: number;

  constructor(readonly json: string) {
    this.byteLength = Buffer.byteLength(json);
  }

  toJSON(): unknown {
    if (met === undefined) return JSON.parse(this.json);
    met.push(this);
    return mark;
  }
}

/** As JSON.stringify, without looking into texts that are JSON already. */
export function stringify(value: object): Pick<JsonText, 'json' | 'byteLength'> {
  const texts: JsonText[] = [];
  met = texts;
  let outline: string;
  try {
    outline = JSON.stringify(value);
  } finally {
    met = undefined;
  }
  if (texts.length === 0) return { json: outline, byteLength: Buffer.byteLength(outline) };
  const between = outline.split(`"${mark}"`);
  let json = between[0]!;
  let byteLength = Buffer.byteLength(outline) - texts.length * (mark.length + 2);
  for (const [index, text] of texts.entries()) {
    json += text.json + between[index + 1]!;
    byteLength += text.byteLength;
  }
  return { json, byteLength };
}
