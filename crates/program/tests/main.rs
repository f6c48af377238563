//! The tests of `longwire-program` from outside, as one program.
#![forbid(unsafe_code)]

mod exercise;
mod forwarders;
mod hostile_objects;
mod inner_maps;
mod instructions;
mod interpreter;
mod locks;
mod objects;
mod repeated;
mod robust;
mod shapes;
mod tail_calls;
mod verifier;
mod verifier_cost;
mod verifier_objects;
mod verifier_properties;
mod verifier_records;

use exercise::program::harness;
