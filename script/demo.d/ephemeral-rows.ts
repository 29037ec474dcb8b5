// What was made for workers and is still in the database: the API hides such rows, so it cannot tell hidden from gone.
import path from 'node:path';
import { PGlite } from '@electric-sql/pglite';

/** The ids. @param dataDirectory of a server that has ended */
export async function ephemeralRowsIn(dataDirectory: string): Promise<string[]> {
  const database = await PGlite.create(path.join(dataDirectory, 'postgres'));
  try {
    const { rows } = await database.query<{ id: string }>(
      'SELECT id FROM threads WHERE ephemeral UNION ALL SELECT id FROM assistants WHERE ephemeral',
    );
    return rows.map(({ id }) => id);
  } finally {
    await database.close();
  }
}
