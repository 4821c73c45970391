/** The states of servers, in the words and the order of the page. */

/** The groups of servers, those that need help first. */
const GROUPS = ['Failed', 'Needs sign-in', 'Starting', 'Ready', 'Idle', 'Stopped', 'Disabled'];

/** Each state: its word, its color, and its group. A server that waits has failed, and will be tried again. */
const STATES = {
  failed: ['Failed', 'failed', 0],
  waiting: ['Failed', 'failed', 0],
  retrying: ['Retrying', 'failed', 0],
  'needs sign-in': ['Needs sign-in', 'attention', 1],
  'needs more access': ['Needs more access', 'attention', 1],
  'signing in': ['Signing in', 'attention', 1],
  starting: ['Starting', 'starting', 2],
  ready: ['Ready', 'ready', 3],
  idle: ['Idle', 'idle', 4],
  stopped: ['Stopped', 'stopped', 5],
  disabled: ['Disabled', 'disabled', 6],
};

function of(server) {
  const state = server.state === 'starting' && server.reason ? 'retrying' : server.state; // it has failed before
  return Object.hasOwn(STATES, state) ? STATES[state] : [state, '', 2];
}

export const stateWord = (server) => of(server)[0];
export const stateName = (server) => of(server)[0].toLowerCase();
export const stateClass = (server) => of(server)[1];
export const stateGroup = (server) => GROUPS[of(server)[2]];
export const isFailing = (server) => of(server)[2] === 0;
export const needsPerson = (server) => of(server)[2] === 1;

/** Sorts servers so that those that need help come first, otherwise in the order of the config. */
export const byNeed = (list) => [...list].sort((a, b) => of(a)[2] - of(b)[2]);

/** Returns the servers by group: [['Failed', [...]], ['Ready', [...]]]. */
export const grouped = (list) => GROUPS.map((group) => [group, list.filter((s) => stateGroup(s) === group)]).filter(([, all]) => all.length > 0);
