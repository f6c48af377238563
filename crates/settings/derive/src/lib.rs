//! `#[derive(Settings)]` and `#[derive(Choice)]`; see the traits of these names in `longwire-settings`.
#![forbid(unsafe_code)]

mod choice;
mod settings;

use proc_macro::TokenStream;
use syn::{Attribute, DeriveInput, Expr, ExprLit, Lit, Meta, parse_macro_input};

/// Derives a row of settings from a struct, and the conversion of values to the struct.
#[proc_macro_derive(Settings, attributes(settings, setting))]
pub fn settings(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    settings::derive(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Derives words from the variants of an enum.
#[proc_macro_derive(Choice)]
pub fn choice(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    choice::derive(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// The first paragraph of doc comments, on one line.
fn documentation(attributes: &[Attribute]) -> String {
    let line = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value().trim().to_owned()),
            _ => None,
        },
        _ => None,
    };
    let lines = attributes.iter().filter_map(line).take_while(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// The external form of a name: `max_p` and `MaxP` become `max-p`.
fn written(name: &str) -> String {
    let mut written = String::new();
    for (at, letter) in name.trim_start_matches("r#").char_indices() {
        if letter == '_' || letter.is_ascii_uppercase() && at > 0 {
            written.push('-');
        }
        if letter != '_' {
            written.push(letter.to_ascii_lowercase());
        }
    }
    written
}
