// The operator's commands, as an operator types them, beside a server that runs.
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startCluster, type Cluster, type ServerProcess } from '../../support/cluster.js';
import { appendEntry, createScratchpad, createThread, readState, setContent } from '../../support/operations.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const nowhere = 'postgresql://postgres@127.0.0.1:1/scratchpad';
const unknownKey = 'key_01ARZ3NDEKTSV4RRFFQ69G5FAV';
const unknownUser = 'user_01ARZ3NDEKTSV4RRFFQ69G5FAV';

interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

function run(command: string[], environment: Record<string, string>): Promise<Outcome> {
  const [file = '', ...args] = command;
  return new Promise((resolve) => {
    const options = { cwd: root, env: { PATH: process.env['PATH'], ...environment } };
    execFile(file, args, options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

let cluster: Cluster;
let server: ServerProcess;

const cli = (args: string[], environment: Record<string, string> = {}): Promise<Outcome> =>
  run([process.execPath, 'dist/cli.js', ...args], {
    DATABASE_URL: cluster.databaseUrl,
    REDIS_URL: cluster.redis.url,
    ...environment,
  });

const valueOf = (name: string, { stdout }: Outcome): string =>
  new RegExp(`^${name} +(\\S+)$`, 'm').exec(stdout)?.[1] ?? '';

const createUser = async (name: string): Promise<{ id: string; secret: string }> => {
  const outcome = await cli(['user', 'create', '--name', name]);
  expect(outcome).toMatchObject({ code: 0, stderr: '' });
  return { id: valueOf('user', outcome), secret: valueOf('secret', outcome) };
};

/** A person reads it: a line or two, which say what to do, without the insides of the program. */
const unclear = ({ code, stdout, stderr }: Outcome, ...words: RegExp[]): string[] => [
  ...(code === 1 ? [] : [`exit code ${code}`]),
  ...(stdout === '' ? [] : [`on standard output: ${stdout}`]),
  ...words.filter((word) => !word.test(stderr)).map((word) => `${String(word)} is not in ${stderr}`),
  ...(/^\s+at |node_modules|prisma\.|invocation|"level":[56]0/m.test(stderr) ? [`insides: ${stderr}`] : []),
  ...(stderr.trim().split('\n').length > 4 ? [`long: ${stderr}`] : []),
];

beforeAll(async () => {
  const built = await run([`${root}script/build`, '--if-stale'], {});
  if (built.code !== 0) throw new Error(`the build failed: ${built.stdout}${built.stderr}`);
  cluster = await startCluster();
  server = await cluster.startServer();
});
afterAll(() => cluster.close());

describe('cli migrate', () => {
  it('brings a database up to date once, whoever else does so at the same moment', async () => {
    const fresh = { DATABASE_URL: await cluster.postgres.createDatabase({ migrated: false }) };
    const outcomes = await Promise.all([cli(['migrate'], fresh), cli(['migrate'], fresh)]);
    expect(outcomes.map(({ code, stderr }) => [code, stderr])).toEqual([
      [0, ''],
      [0, ''],
    ]);
    const told = outcomes.map(({ stdout }) => stdout).toSorted();
    expect(told).toEqual([expect.stringMatching(/^applied \d{14}_/), 'nothing to do: the database is up to date\n']);
    expect((await cli(['user', 'list'], fresh)).code).toBe(0);
  });
});

describe('cli user', () => {
  it('creates a user whose secret works at once, shows it once, and lists it without', async () => {
    const { id, secret } = await createUser('Ada Lovelace');
    expect(secret).toMatch(/^spk_[\w-]{43}$/);
    expect(await server.clientFor(secret).run('{ viewer { id name } }')).toEqual({
      viewer: { id, name: 'Ada Lovelace' },
    });
    const list = await cli(['user', 'list']);
    expect(list.stdout).toMatch(new RegExp(`^${id}  \\d{4}-\\S+Z  Ada Lovelace$`, 'm'));
    expect(list.stdout).not.toContain(secret.slice(4));
  });

  it('says what is missing or wrong', async () => {
    const missing = await cli(['user', 'create']);
    expect(missing.code).toBe(1);
    expect(missing.stderr).toContain("required option '--name <name>'");
    expect(unclear(await cli(['user', 'create', '--name', ' ']), /name: must not be blank/)).toEqual([]);
  });
});

describe('cli key', () => {
  it('creates, lists and revokes keys, and a running server follows within two seconds', async () => {
    const { id } = await createUser('Grace');
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const created = await cli(['key', 'create', '--user', id, '--name', 'laptop', '--expires-at', expiresAt]);
    expect(created).toMatchObject({ code: 0, stderr: '' });
    const [keyId, secret] = [valueOf('key', created), valueOf('secret', created)];
    const client = server.clientFor(secret);
    expect(await client.run('{ viewer { id } }')).toEqual({ viewer: { id } });

    const list = await cli(['key', 'list', '--user', id]);
    expect(list.stdout.trim().split('\n')).toHaveLength(2);
    const line = list.stdout.split('\n').find((one) => one.startsWith(keyId)) ?? '';
    expect(line).toContain(`${secret.slice(0, 12)}…`);
    expect(line).toContain(`expires ${expiresAt}`);
    expect(line).toMatch(/revoked - {2}laptop$/);
    expect(list.stdout).not.toContain(secret.slice(13));
    expect((await cli(['key', 'list'])).stdout.split('\n').length).toBeGreaterThan(list.stdout.split('\n').length);

    expect(await cli(['key', 'revoke', keyId])).toEqual({ code: 0, stdout: `revoked ${keyId}\n`, stderr: '' });
    await expect.poll(async () => (await client.send('{ __typename }')).status, { timeout: 2000 }).toBe(401);
    const again = await cli(['key', 'list', '--user', id]);
    expect(again.stdout).toMatch(new RegExp(`^${keyId} .*revoked \\d{4}-\\S+Z  laptop$`, 'm'));
    expect((await cli(['key', 'revoke', keyId])).code).toBe(0);
    expect((await cli(['key', 'list', '--user', id])).stdout).toBe(again.stdout);
  });

  it('says which id it does not know, and what is wrong with the rest', async () => {
    const { id } = await createUser('Edsger');
    for (const user of [unknownUser]) {
      expect(
        unclear(
          await cli(['key', 'create', '--user', user, '--name', 'x']),
          new RegExp(`no user ${user}`),
          /user list/,
        ),
      ).toEqual([]);
      expect(unclear(await cli(['key', 'list', '--user', user]), new RegExp(`no user ${user}`), /user list/)).toEqual(
        [],
      );
    }
    for (const key of [unknownKey, id]) {
      expect(unclear(await cli(['key', 'revoke', key]), new RegExp(`no key ${key}`), /key list/)).toEqual([]);
    }
    const past = ['key', 'create', '--user', id, '--name', 'x', '--expires-at'];
    expect(unclear(await cli([...past, '2001-01-01T00:00:00Z']), /expiresAt must lie in the future/)).toEqual([]);
    const noInstant = await cli([...past, 'tomorrow']);
    expect(noInstant.code).toBe(1);
    expect(noInstant.stderr).toContain('Give an instant such as');
  });
});

describe('cli doctor', () => {
  it('is silent when all is well', async () => {
    const { secret } = await createUser('Healthy');
    const client = server.clientFor(secret);
    await appendEntry(client, await createScratchpad(client), 'a finding', 'key');
    expect(await cli(['doctor'])).toEqual({ code: 0, stdout: '', stderr: '' });
    expect(await cli(['doctor', '--fix'])).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  it('finds an orphan of every family of keys, and removes it when it is told to, and nothing else', async () => {
    const { id: owner, secret } = await createUser('Patient');
    const client = server.clientFor(secret);
    const thread = await createThread(client);
    const pad = await createScratchpad(client, thread);
    await setContent(client, pad, 'plan', { idempotencyKey: 'set' });
    await appendEntry(client, pad, 'finding', 'append');
    const redis = cluster.redis.client();
    await redis.set(`scratchpad:${thread}:notebook`, '{"content":"old"}');
    const [goneOwner, gonePad, goneThread] = ['user', 'sp', 'thread'].map(
      (prefix) => `${prefix}_01ARZ3NDEKTSV4RRFFQ69G5FAV`,
    );
    const orphans = [
      `scratchpad:${goneOwner}:${gonePad}:content`,
      `scratchpad:${owner}:${gonePad}:entries`,
      `scratchpad:${goneOwner}:${pad}:content`,
      `sequence:${owner}:${gonePad}`,
      `idempotency:${owner}:${gonePad}`,
      `idempotency:${owner}:${gonePad}:a:key:with:colons`,
      `scratchpad:${goneThread}:notebook`,
      `tombstone:${pad}`,
    ];
    for (const key of orphans) await redis.set(key, '1');
    await redis.set(`tombstone:${gonePad}`, '1');
    await redis.set('somebody:elses:key', '1');
    const before = (await redis.keys('*')).filter((key) => !orphans.includes(key)).sort();

    const found = await cli(['doctor']);
    expect(found).toMatchObject({ code: 1, stderr: '' });
    const lines = found.stdout.trim().split('\n');
    expect(
      lines
        .slice(0, -1)
        .map((line) => line.split(' ')[0] ?? '')
        .toSorted(),
    ).toEqual(orphans.toSorted());
    expect(lines.slice(0, -1).every((line) => / {2}\w.+/.test(line))).toBe(true);
    expect(lines.at(-1)).toBe(`${orphans.length} orphaned keys, 0 purges waiting`);
    expect(await redis.exists(...orphans)).toBe(orphans.length);

    const fixed = await cli(['doctor', '--fix']);
    expect(fixed).toMatchObject({ code: 0, stderr: '' });
    expect(fixed.stdout.match(/ removed$/gm)).toHaveLength(orphans.length);
    expect((await redis.keys('*')).sort()).toEqual(before);
    expect(await cli(['doctor'])).toEqual({ code: 0, stdout: '', stderr: '' });
    expect(await readState(client, pad)).toMatchObject({ content: { text: 'plan' }, entryCount: 1 });
  });
});

describe('what stands in the way', () => {
  const commands = [['user', 'list'], ['doctor']];

  it.each(commands.map((command) => [command.join(' '), command] as const))(
    'is said by `cli %s` when the database is behind, and `cli migrate` is named',
    async (_name, command) => {
      const behind = { DATABASE_URL: await cluster.postgres.createDatabase({ migrated: false }) };
      expect(unclear(await cli(command, behind), /database is behind/, /cli migrate/)).toEqual([]);
    },
  );

  it.each([...commands, ['migrate']].map((command) => [command.join(' '), command] as const))(
    'is said by `cli %s` when the database does not answer',
    async (_name, command) => {
      expect(unclear(await cli(command, { DATABASE_URL: nowhere }), /SQL does not answer/, /DATABASE_URL/)).toEqual([]);
    },
  );

  it('is said by `cli doctor` when Redis does not answer', async () => {
    expect(
      unclear(await cli(['doctor'], { REDIS_URL: 'redis://127.0.0.1:1' }), /Redis does not answer/, /REDIS_URL/),
    ).toEqual([]);
  });

  it('is said about a wrong configuration, one line for each mistake', async () => {
    const wrong = { DATABASE_URL: 'mysql://x', REDIS_SCRATCHPAD_TTL_SECONDS: '-1', LOG_LEVEL: 'loud' };
    const outcome = await cli(['user', 'list'], wrong);
    expect(
      unclear(
        outcome,
        /The configuration is wrong/,
        /^DATABASE_URL must/m,
        /^REDIS_SCRATCHPAD_TTL_SECONDS must/m,
        /^LOG_LEVEL must/m,
      ),
    ).toEqual([]);
  });

  it('is said about a command that does not exist', async () => {
    const outcome = await cli(['frobnicate']);
    expect(outcome.code).toBe(1);
    expect(outcome.stderr).toMatch(/unknown command 'frobnicate'/);
  });
});

describe('node dist/main.js', () => {
  it('says which store does not answer', async () => {
    const refused = await run([process.execPath, 'dist/main.js'], {
      PORT: '0',
      DATABASE_URL: nowhere,
      REDIS_URL: cluster.redis.url,
    });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/^Could not start: SQL does not answer: check DATABASE_URL/m);
  });

  it('refuses a database that is behind and names the command that helps, which does', async () => {
    const environment = {
      PORT: '0',
      DATABASE_URL: await cluster.postgres.createDatabase({ migrated: false }),
      REDIS_URL: cluster.redis.url,
    };
    const refused = await run([process.execPath, 'dist/main.js'], environment);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/^Could not start: The database lacks \d{14}_/);
    const [, command = ''] = /run `([^`]+)`/.exec(refused.stderr) ?? [];
    expect(command).toBe('node dist/cli.js migrate');
    expect((await run(command.split(' '), environment)).code).toBe(0);
    await starts(environment);
    expect(JSON.parse(await readFile(`${root}package.json`, 'utf8'))).toMatchObject({
      scripts: { start: 'node dist/main.js' },
    });
  });
});

/** Starts the built server, waits until it listens, and ends it. */
async function starts(environment: Record<string, string>): Promise<void> {
  const child = spawn(process.execPath, ['dist/main.js'], {
    cwd: root,
    env: { PATH: process.env['PATH'], ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  for await (const chunk of child.stdout) if (String(chunk).includes('"listening"')) break;
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
}

describe('without DATABASE_URL', () => {
  it('no command makes a database that nobody asked for, and migrate says that it makes one', async () => {
    const parent = await mkdtemp(join(tmpdir(), 'cli-'));
    const environment = { DATABASE_URL: '', REDIS_URL: cluster.redis.url, DATA_DIR: join(parent, 'data') };
    try {
      for (const args of [
        ['user', 'list'],
        ['user', 'create', '--name', 'Ada'],
        ['key', 'list'],
        ['key', 'create', '--user', unknownUser, '--name', 'x'],
        ['key', 'revoke', unknownKey],
        ['doctor'],
      ]) {
        expect(
          unclear(await cli(args, environment), /no embedded database under .*data/, /DATABASE_URL/),
          args.join(' '),
        ).toEqual([]);
        expect(existsSync(environment.DATA_DIR)).toBe(false);
      }
      const migrated = await cli(['migrate'], environment);
      expect(migrated).toMatchObject({ code: 0, stderr: '' });
      expect(migrated.stdout).toContain(`making an embedded database under ${environment.DATA_DIR}`);
      expect(await cli(['user', 'list'], environment)).toEqual({ code: 0, stdout: '', stderr: '' });
      expect((await cli(['migrate'], environment)).stdout).not.toContain('making');
    } finally {
      await rm(parent, { recursive: true, force: true });
    }
  });
});
