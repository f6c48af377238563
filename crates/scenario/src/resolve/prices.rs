//! Prices of a router, from a file.

use super::{Entry, Resolver};
use crate::file_router::Router;
use crate::prices_file::prices_of;
use crate::written::Text;
use longwire_router::RouterPrices;

const FIX: &str = "run \"longwire calibrate\", or leave it out for assumed prices";

impl Resolver<'_, '_> {
    /// Prices: measured on this machine, from a file, or assumed.
    pub(super) fn prices(&mut self, entry: &Entry<'_>, written: &Router) -> Option<RouterPrices> {
        let Some(prices) = &written.prices else { return Some(RouterPrices::default()) };
        let Text(name) = self.term(entry, "prices", prices)?;
        match prices_of(&name, &self.folder) {
            Ok(prices) => Some(prices.router),
            Err(fault) => {
                self.error(&prices.span, entry, "prices", fault, FIX);
                None
            }
        }
    }
}
