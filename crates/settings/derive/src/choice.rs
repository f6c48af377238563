//! Words of an enum.

use crate::written;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Result};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Enum(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "a choice is an enum"));
    };
    if let Some(variant) = data.variants.iter().find(|variant| !matches!(variant.fields, Fields::Unit)) {
        return Err(Error::new_spanned(variant, "a word of a choice has no fields"));
    }
    let name = &input.ident;
    let variants = data.variants.iter().map(|variant| &variant.ident);
    let words = data.variants.iter().map(|variant| written(&variant.ident.to_string()));
    Ok(quote! {
        impl ::longwire_settings::Choice for #name {
            const WORDS: &'static [&'static str] = &[#(#words),*];
            const ALL: &'static [Self] = &[#(Self::#variants),*];
        }
    })
}
