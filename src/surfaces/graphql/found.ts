// For fields that the contract promises: what has gone meanwhile is NOT_FOUND, not a null where none may be.
import { notFound } from '../../shared/errors.js';

/** @throws DomainError NOT_FOUND for null */
export async function found<Value>(search: Promise<Value | null>): Promise<Value> {
  const value = await search;
  if (value === null) throw notFound();
  return value;
}
