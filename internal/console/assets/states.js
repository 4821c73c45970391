/** The states of servers, in the words and the order of the page. */

/** Each state: its word, its colour, and its group. A server that waits has failed, and will be tried again. */
const STATES = {
  failed: ['Failed', 'failed', 0],
  waiting: ['Failed', 'failed', 0],
  starting: ['Starting', 'starting', 1],
  ready: ['Ready', 'ready', 2],
  idle: ['Idle', 'idle', 3],
  stopped: ['Stopped', 'stopped', 4],
  disabled: ['Disabled', 'disabled', 5],
};

const of = (server) => (Object.hasOwn(STATES, server.state) ? STATES[server.state] : [server.state, '', 1]);

export const stateWord = (server) => of(server)[0];
export const stateName = (server) => of(server)[0].toLowerCase();
export const stateClass = (server) => of(server)[1];
export const isFailing = (server) => of(server)[2] === 0;

/** Sorts servers so that those that need help come first, otherwise in the order of the config. */
export const byNeed = (list) => [...list].sort((a, b) => of(a)[2] - of(b)[2]);

/** Returns the servers in groups of one state: [['Failed', [...]], ['Ready', [...]]]. */
export function grouped(list) {
  const groups = new Map();
  for (const s of byNeed(list)) groups.set(stateWord(s), [...groups.get(stateWord(s)) ?? [], s]);
  return [...groups];
}
