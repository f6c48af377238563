//! Compiled programs against the interpreter, and both against the kernel where it may be asked.

mod bench;
mod continued;
mod generate;
mod instructions;
mod kernel;
mod objects;
mod random;
mod routes;
