//! Which pages serve which class: lists of pages with room, and of empty ones.

use super::{NONE, PAGE_LINES, Page, Pool};
use crate::arena::LINE;
use crate::class::CLASSES;

impl Pool {
    /// Finds a page for a class that has no page with room.
    #[cold]
    pub(super) fn page_for(&mut self, class: usize) -> Option<u32> {
        if self.empty.is_empty() {
            self.reclaim();
        }
        let page = self.empty.pop()?;
        if let Some(growth) = &mut self.growth {
            growth.reach((page as usize + 1) * PAGE_LINES as usize * LINE);
        }
        let state = &mut self.pages[page as usize];
        (state.free, state.fresh, state.live, state.class) = (NONE, 0, 0, class as u32);
        self.link(page, class);
        Some(page)
    }

    /// Reclaims the empty page that each class keeps to avoid taking and returning it for every packet.
    fn reclaim(&mut self) {
        for class in 0..CLASSES {
            let page = self.room[class];
            if page != NONE && self.pages[page as usize].live == 0 {
                self.retire(page, class);
            }
        }
    }

    pub(super) fn retire(&mut self, page: u32, class: usize) {
        self.unlink(page, class);
        self.empty.push(page);
    }

    pub(super) fn link(&mut self, page: u32, class: usize) {
        // An empty page is only kept where no other has room, so that it is the first.
        let kept = self.room[class];
        if kept != NONE && self.pages[kept as usize].live == 0 {
            self.retire(kept, class);
        }
        let next = self.room[class];
        if next != NONE {
            self.pages[next as usize].previous = page;
        }
        let state = &mut self.pages[page as usize];
        (state.next, state.previous) = (next, NONE);
        self.room[class] = page;
    }

    pub(super) fn unlink(&mut self, page: u32, class: usize) {
        let Page { next, previous, .. } = self.pages[page as usize];
        match previous {
            NONE => self.room[class] = next,
            _ => self.pages[previous as usize].next = next,
        }
        if next != NONE {
            self.pages[next as usize].previous = previous;
        }
        let state = &mut self.pages[page as usize];
        (state.next, state.previous) = (NONE, NONE);
    }
}
