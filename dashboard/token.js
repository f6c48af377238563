// The token that a service may ask for. It is kept for this tab only, and goes when the tab is closed.

import { byId, mark, say } from './dom.js';

const KEY = 'longwire-token';

let token = kept();

function kept() {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    // Storage may be forbidden; the token lasts as long as the page, then.
    return null;
  }
}

function keep(text) {
  token = text;
  try {
    if (text === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, text);
  } catch {
    // As above.
  }
}

/** The token now; null if there is none. */
export const present = () => token;

/** What a header can carry: printable ASCII without spaces. */
const isToken = (text) => /^[\x21-\x7e]+$/.test(text);

/** The form that asks for a token, and the button that forgets it. */
export class Gate {
  #form = byId('gate');
  #input = byId('token');
  #wrong = byId('token-wrong');
  #forget = byId('forget-token');

  /** `changed` is called when there is another token, or none any more. */
  constructor(changed) {
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      const text = this.#input.value.trim();
      if (!isToken(text)) {
        this.#refuse('A token has letters, digits and signs, and no spaces.');
        return;
      }
      keep(text);
      changed();
    });
    this.#forget.addEventListener('click', () => {
      keep(null);
      changed();
    });
  }

  /** Asks for a token; one that was sent is refused. */
  ask() {
    const refused = token !== null;
    keep(null);
    const opens = this.#form.hidden;
    this.#show(true);
    if (refused) this.#refuse('The service does not know this token.');
    if (opens) this.#input.focus();
  }

  /** The service has answered: it knows the token, or wants none. */
  pass() {
    this.#show(false);
    this.#input.value = '';
    this.#refuse('');
  }

  #show(open) {
    this.#form.hidden = !open;
    this.#forget.hidden = open || token === null;
    document.querySelector('main').hidden = open;
  }

  #refuse(text) {
    say(this.#wrong, text);
    mark(this.#input, 'aria-invalid', text ? 'true' : null);
  }
}
