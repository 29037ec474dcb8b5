// Keeps the provider's key out of what a model says, although it arrives in pieces and a provider may echo it.
import { redact } from './provider-error.js';

/** Shorter ones are what local servers are given in place of a key, such as "ollama": words that an answer may hold. */
const shortestSecret = 12;

/** The forms of a key that a provider may echo, longest first. */
export function secretsOf(apiKey: string | undefined): string[] {
  if (apiKey === undefined || apiKey.length < shortestSecret) return [];
  const forms = new Set([apiKey, encodeURIComponent(apiKey), JSON.stringify(apiKey).slice(1, -1)]);
  return [...forms].toSorted((a, b) => b.length - a.length);
}

/** How long the end of the text is that may be the beginning of a secret. */
function openLength(text: string, secrets: readonly string[]): number {
  const longest = Math.min(text.length, Math.max(0, ...secrets.map(({ length }) => length - 1)));
  for (let length = longest; length > 0; length--) {
    if (secrets.some((secret) => secret.startsWith(text.slice(-length)))) return length;
  }
  return 0;
}

/** Returns what of the text so far may go on: what could become a secret waits for the next piece. */
export function createSecretFilter(secrets: readonly string[]) {
  let held = '';
  return {
    push(piece: string): string {
      const text = redact(held + piece, secrets);
      const open = openLength(text, secrets);
      held = text.slice(text.length - open);
      return text.slice(0, text.length - open);
    },
    end(): string {
      const rest = held;
      held = '';
      return rest;
    },
  };
}
