// The theme, set before the page is painted: the chosen one, or without a choice the system's.
'use strict';
{
  const root = document.documentElement;
  const dark = matchMedia('(prefers-color-scheme: dark)');
  let chosen = null;
  try {
    chosen = localStorage.getItem('longwire-theme');
  } catch {
    // Storage may be forbidden; the system's theme is shown then.
  }
  const show = () => {
    const system = dark.matches ? 'dark' : 'light';
    root.dataset.theme = chosen === 'light' || chosen === 'dark' ? chosen : system;
    dispatchEvent(new Event('theme'));
  };
  show();
  dark.addEventListener('change', show);
  addEventListener('DOMContentLoaded', () => {
    document.getElementById('theme').addEventListener('click', () => {
      chosen = root.dataset.theme === 'dark' ? 'light' : 'dark';
      try {
        localStorage.setItem('longwire-theme', chosen);
      } catch {
        // It lasts as long as the page, then.
      }
      show();
    });
  });
}
