//! What packets cost on a machine: prices of the engine's stages, of blocks, drivers and programs, as
//! measured by `longwire calibrate` or assumed, and the file that keeps them.
#![forbid(unsafe_code)]

mod engine_prices;
mod prices_file;

pub use engine_prices::{
    APART_COUNTS, BLOCK_COUNTS, EnginePrices, FLIGHT_COUNTS, LINK_COUNTS, Origin, Price, WAITS, block_price,
    block_price_at,
};
pub use prices_file::{
    MachinePrices, PRICES, PricesError, named_prices, own_prices, prices_of, read_prices, write_prices,
};
