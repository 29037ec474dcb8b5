// What every error that a client may read has to keep.
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { DomainError, invalidInput, notFound, parseInput, unavailable } from '../../../src/shared/errors.js';

const caught = (action: () => unknown): DomainError => {
  try {
    action();
  } catch (error) {
    if (error instanceof DomainError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
};

describe('the domain errors', () => {
  it('answer "not found" with the same words whatever was asked for', () => {
    const [one, two] = [notFound(), notFound()];
    expect([one.code, one.message, one.details]).toEqual(['NOT_FOUND', two.message, {}]);
    expect(one.message).not.toMatch(/(user|thread|sp|key|msg)_/);
  });

  it('keep the cause of an outage for the log and out of the message', () => {
    const cause = new Error('connect ECONNREFUSED 10.0.0.7:6379');
    const error = unavailable('Redis', cause);
    expect(error.code).toBe('UNAVAILABLE');
    expect(error.cause).toBe(cause);
    expect(error.message).toContain('Redis');
    expect(error.message).not.toContain('10.0.0.7');
  });

  it('list at least one issue for every invalid input', () => {
    expect(invalidInput('name must not be blank').details.issues).toEqual([
      { path: [], message: 'name must not be blank' },
    ]);
  });

  it('report every mistake of an input at once, each with its path', () => {
    const schema = z.object({ name: z.string('must be text'), list: z.array(z.number('must be a number')) });
    const error = caught(() => parseInput(schema, { name: 1, list: [1, 'two'] }));
    expect(error.code).toBe('INVALID_INPUT');
    expect(error.details.issues).toEqual([
      { path: ['name'], message: 'must be text' },
      { path: ['list', 1], message: 'must be a number' },
    ]);
    expect(error.message).toBe('name: must be text; list.1: must be a number');
  });

  it('hand on what a schema makes of a good input', () => {
    expect(parseInput(z.object({ n: z.number().default(3) }), {})).toEqual({ n: 3 });
  });
});
