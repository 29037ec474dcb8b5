// A server in a process of its own, and what the kernel says that it uses.
import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';

export interface Server {
  url: string;
  pid: number;
  child: ChildProcess;
}

export async function start(args: string[], environment: Record<string, string> = {}): Promise<Server> {
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env['PATH'], NODE_ENV: 'production', ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`ended with ${code}: ${text}`)));
    child.stdout.on('data', (chunk: Buffer) => {
      if (text.length < 10_000) text += chunk.toString();
      const found = /"url":"([^"]+)","msg":"listening"/.exec(text)?.[1];
      if (found) resolve(found);
    });
  });
  return { url, pid: child.pid!, child };
}

export const cpuSeconds = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
};
export const rssBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024;
