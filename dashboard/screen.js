// Which parts of the page are on the screen: what nobody sees is neither asked for nor drawn.

export class Screen {
  #seen = new Set();

  /** `appeared` is called when a part comes into view. */
  constructor(appeared) {
    const observer = new IntersectionObserver((changes) => {
      for (const { target, isIntersecting } of changes) {
        if (isIntersecting) this.#seen.add(target.id);
        else this.#seen.delete(target.id);
      }
      if (changes.some((change) => change.isIntersecting)) appeared();
    }, { rootMargin: '200px' });
    for (const id of ['topology', 'panel', 'routers']) observer.observe(document.getElementById(id));
  }

  shows(id) {
    return this.#seen.has(id);
  }
}
