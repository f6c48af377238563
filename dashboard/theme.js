// The chosen theme, set before the page is painted; without a choice, the system's.
'use strict';
{
  const root = document.documentElement;
  let chosen = null;
  try {
    chosen = localStorage.getItem('longwire-theme');
  } catch {
    // Storage may be forbidden; the system's theme is shown then.
  }
  if (chosen === 'light' || chosen === 'dark') root.dataset.theme = chosen;
  addEventListener('DOMContentLoaded', () => {
    document.getElementById('theme').addEventListener('click', () => {
      const system = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
      const next = (root.dataset.theme || system) === 'dark' ? 'light' : 'dark';
      root.dataset.theme = next;
      try {
        localStorage.setItem('longwire-theme', next);
      } catch {
        // It lasts as long as the page, then.
      }
      dispatchEvent(new Event('theme'));
    });
  });
}
