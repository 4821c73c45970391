/** Dialogs for requests from servers, one at a time. */

import { add, button, h } from '../dom.js';
import { createForm } from '../form.js';
import { contentBlock, tree } from '../render.js';
import { note } from '../state.js';

let queue = Promise.resolve();

const QUESTIONS = {
  'elicitation/create': (params) => (params.mode === 'url' ? visit(params) : fillIn(params)),
  'sampling/createMessage': sample,
};

/** Responds to a server's request with the person's answer. */
export async function answer(method, params, { label, signal }) {
  note({ kind: 'asked', from: label, text: method });
  if (!QUESTIONS[method]) throw Object.assign(new Error(`Method '${method}' not found`), { code: -32601 });
  const turn = queue.then(() => QUESTIONS[method](params)).then((q) => ask(q, label, signal));
  queue = turn.catch(() => {});
  return turn;
}

/**
 * Shows a question until the person answers it or the server cancels it.
 * @param {{title: string, body: any[], answers: [string, () => any, string?][], dismissed: () => any}} question
 */
function ask({ title, body, answers, dismissed }, label, signal) {
  return new Promise((resolve, reject) => {
    const dialog = h('dialog', { class: 'dialog', 'aria-labelledby': 'asked' });
    const finish = (result) => {
      try {
        const value = result();
        if (value === undefined) return; // not yet
        resolve(value);
      } catch (error) {
        reject(error);
      }
      dialog.close();
    };
    const [main, ...others] = answers;
    const form = h('form', {
      novalidate: true,
      onsubmit: (event) => { event.preventDefault(); finish(main[1]); },
      onkeydown: (event) => {
        if (event.key !== 'Enter') return;
        if (event.repeat) event.preventDefault(); // the key was pressed before the dialog opened
        else if ((event.ctrlKey || event.metaKey) && event.target.id !== 'asked') form.requestSubmit();
      },
    },
      h('header', {}, h('h2', { id: 'asked', tabIndex: -1 }, title), label && h('p', { class: 'muted' }, `Asked by ${label}`)), h('div', { class: 'dialog-body' }, body),
      h('footer', {}, h('button', { type: 'submit', class: 'button primary' }, main[0]), others.map(([text, result]) => button(text, () => finish(result)))));
    add(dialog, form);
    dialog.addEventListener('cancel', (event) => { event.preventDefault(); finish(dismissed); });
    dialog.addEventListener('close', () => dialog.remove());
    signal.addEventListener('abort', () => { dialog.close(); reject(new Error('the server canceled the request')); });
    if (signal.aborted) return reject(new Error('the server canceled the request'));
    document.body.append(dialog);
    dialog.showModal();
    // Do not focus a button: a key meant for something else would press it.
    (dialog.querySelector('.dialog-body :is(input, select, textarea)') ?? dialog.querySelector('h2')).focus();
  });
}

const decline = ['Decline', () => ({ action: 'decline' })];

/** A form to fill in. */
function fillIn({ message, requestedSchema = { type: 'object' } }) {
  const form = createForm({ additionalProperties: false, ...requestedSchema }, { titles: true, prefill: true });
  return {
    title: 'The server asks for input',
    body: [h('p', { class: 'pre' }, message), form.el],
    answers: [['Accept', () => (form.check().length > 0 ? void form.focusError() : { action: 'accept', content: form.get() })], decline, ['Cancel', () => ({ action: 'cancel' })]],
    dismissed: () => ({ action: 'cancel' }),
  };
}

/** A page to visit. Only the person opens it. */
function visit({ message, url }) {
  const isWeb = /^https?:\/\//i.test(url);
  return {
    title: 'The server asks you to visit a page',
    body: [h('p', { class: 'pre' }, message), h('p', {}, h('code', { class: 'wrap' }, url)), !isWeb && h('p', { class: 'field-error' }, 'This is not an address of the web, so it cannot be opened from here.')],
    answers: [
      ...isWeb ? [['Open the page', () => { window.open(url, '_blank', 'noopener,noreferrer'); return { action: 'accept' }; }]] : [],
      decline, ['Cancel', () => ({ action: 'cancel' })],
    ],
    dismissed: () => ({ action: 'cancel' }),
  };
}

/** A message to write in place of a model. */
function sample({ messages = [], systemPrompt, ...rest }) {
  const text = h('textarea', { class: 'tall', id: 'sample-text', 'aria-required': 'true' });
  const error = h('p', { class: 'field-error', role: 'alert', hidden: true }, 'Write an answer, or decline.');
  const reject = () => { throw Object.assign(new Error('User rejected sampling request'), { code: -1 }); };
  return {
    title: 'The server asks a model',
    body: [
      h('p', { class: 'muted' }, 'You answer in place of the model.'),
      systemPrompt && h('section', { class: 'block' }, h('header', {}, h('h4', {}, 'System prompt')), h('pre', { class: 'text', tabIndex: 0 }, systemPrompt)),
      messages.map((m) => h('div', { class: 'message' }, h('span', { class: 'role' }, m.role), [m.content ?? []].flat().map((c) => contentBlock(c, '')))),
      h('details', {}, h('summary', {}, 'Other settings'), tree(rest)),
      h('div', { class: 'field' }, h('label', { htmlFor: 'sample-text', class: 'field-label' }, h('span', { class: 'field-name' }, 'Answer')), text, error),
    ],
    answers: [['Send', () => {
      error.hidden = text.value !== '';
      if (text.value === '') return void text.focus();
      return { role: 'assistant', content: { type: 'text', text: text.value }, model: 'a person', stopReason: 'endTurn' };
    }], ['Decline', reject]],
    dismissed: reject,
  };
}

const KEYS = [['/', 'Search'], ['↑ ↓', 'Move in lists'], ['Enter', 'Open'], ['Ctrl Enter', 'Run'], ['l', 'Show or hide the log'], ['Esc', 'Close, or clear the search'], ['?', 'This list']];

export function showShortcuts() {
  if (document.querySelector('dialog[open]')) return;
  const dialog = h('dialog', { class: 'dialog small', 'aria-labelledby': 'shortcuts', onclose: () => dialog.remove() },
    h('header', {}, h('h2', { id: 'shortcuts' }, 'Keyboard shortcuts')),
    h('dl', { class: 'keys' }, KEYS.map(([keys, what]) => h('div', {}, h('dt', {}, what), h('dd', {}, keys.split(' ').map((k) => h('kbd', {}, k)))))),
    h('footer', {}, button('Close', () => dialog.close())));
  document.body.append(dialog);
  dialog.showModal();
}
