// Loaded into a measured server with --import: tells the parent process, when it asks, what the server has used so far.
import { runInNewContext } from 'node:vm';
import { setFlagsFromString } from 'node:v8';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');
setFlagsFromString('--no-expose-gc');

const answers = {
  usage: () => ({ cpu: process.cpuUsage(), memory: process.memoryUsage() }),
  collect: () => {
    collectGarbage();
    collectGarbage();
    return answers.usage();
  },
};
process.on('message', ({ id, ask }) => {
  if (Object.hasOwn(answers, ask)) process.send({ id, ...answers[ask]() });
});
// Nothing outlives the program that measures.
process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'));
process.channel.unref();
