//! Compiled programs against the interpreter, and both against the kernel if permitted.

mod bench;
mod continued;
mod generate;
mod instructions;
mod kernel;
mod objects;
mod random;
mod routes;
