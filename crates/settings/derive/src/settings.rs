//! Derivation of a row from a struct.

use crate::{documentation, written};
use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, Field, Fields, GenericArgument, Ident, LitStr, PathArguments,
    Result, Type,
};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "settings are a struct"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(&input.ident, "settings have names"));
    };
    let Row { key, kind, source, live } = Row::read(input)?;
    let summary = documentation(&input.attrs);
    let (mut params, mut values) = (Vec::new(), Vec::new());
    for field in &fields.named {
        let (said, name) = (Said::read(&field.attrs)?, &field.ident);
        values.push(if said.skip {
            quote!(#name: ::core::default::Default::default())
        } else {
            params.push(param(field, &said, live)?);
            quote!(#name: ::longwire_settings::take(&mut values))
        });
    }
    let name = &input.ident;
    Ok(quote! {
        impl ::longwire_settings::Settings for #name {
            const SPEC: ::longwire_settings::Spec = ::longwire_settings::Spec {
                key: #key,
                kind: #kind,
                summary: #summary,
                source: #source,
                params: &[#(#params),*],
            };

            fn of(values: &::longwire_settings::Values) -> Self {
                let mut values = values.as_slice().iter();
                Self { #(#values),* }
            }
        }
    })
}

/// Contents of `#[settings(…)]`.
struct Row {
    key: Expr,
    kind: Expr,
    source: Expr,
    live: bool,
}

impl Row {
    fn read(input: &DeriveInput) -> Result<Self> {
        let (mut key, mut kind, mut source, mut live) = (None, None, None, false);
        for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("settings")) {
            attribute.parse_nested_meta(|meta| {
                match &*called(&meta) {
                    "live" => live = true,
                    "key" => key = Some(meta.value()?.parse()?),
                    "kind" => kind = Some(meta.value()?.parse()?),
                    "source" => source = Some(meta.value()?.parse()?),
                    _ => return Err(meta.error("write key, kind, source or live")),
                }
                Ok(())
            })?;
        }
        let missing =
            |what| Error::new_spanned(&input.ident, format!("#[settings({what} = \"…\")] is missing"));
        Ok(Self {
            key: key.ok_or_else(|| missing("key"))?,
            kind: kind.ok_or_else(|| missing("kind"))?,
            source: source.ok_or_else(|| missing("source"))?,
            live,
        })
    }
}

/// Contents of `#[setting(…)]`.
#[derive(Default)]
struct Said {
    name: Option<LitStr>,
    default: Option<Expr>,
    default_is: Option<Expr>,
    min: Option<Expr>,
    max: Option<Expr>,
    grammar: Option<Expr>,
    like: Option<Expr>,
    skip: bool,
    live: bool,
}

impl Said {
    fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut said = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("setting")) {
            attribute.parse_nested_meta(|meta| {
                match &*called(&meta) {
                    "skip" => said.skip = true,
                    "live" => said.live = true,
                    "name" => said.name = Some(meta.value()?.parse()?),
                    "default" => said.default = Some(meta.value()?.parse()?),
                    "default_is" => said.default_is = Some(meta.value()?.parse()?),
                    "min" => said.min = Some(meta.value()?.parse()?),
                    "max" => said.max = Some(meta.value()?.parse()?),
                    "grammar" => said.grammar = Some(meta.value()?.parse()?),
                    "like" => said.like = Some(meta.value()?.parse()?),
                    _ => {
                        let known = "write name, default, default_is, min, max, grammar, like, live or skip";
                        return Err(meta.error(known));
                    }
                }
                Ok(())
            })?;
        }
        Ok(said)
    }
}

/// The word of one of the contents of an attribute.
fn called(meta: &ParseNestedMeta<'_>) -> String {
    meta.path.get_ident().map(Ident::to_string).unwrap_or_default()
}

fn param(field: &Field, said: &Said, live: bool) -> Result<TokenStream> {
    let ident = field.ident.as_ref().map(Ident::to_string).unwrap_or_default();
    let name = said.name.as_ref().map_or_else(|| written(&ident), LitStr::value);
    let help = documentation(&field.attrs);
    let live = live || said.live;
    let mut parts = vec![quote!(live: #live)];
    // A setting like another also has its name.
    if said.name.is_some() || said.like.is_none() {
        parts.push(quote!(name: #name));
    }
    if let Some(default) = fallback(field, said)? {
        parts.push(quote!(default: ::longwire_settings::Fallback::#default));
    }
    if !help.is_empty() {
        parts.push(quote!(help: #help));
    }
    if let Some(like) = &said.like {
        return Ok(quote!(::longwire_settings::Param { #(#parts,)* ..#like }));
    }
    if help.is_empty() {
        return Err(Error::new_spanned(field, "a doc comment has to say what it means"));
    }
    let kind = kind(optional(&field.ty).unwrap_or(&field.ty), said)?;
    Ok(quote!(::longwire_settings::Param { #(#parts,)* kind: ::longwire_settings::ParamKind::#kind }))
}

/// The fallback of a field; none if the setting it is like has it.
fn fallback(field: &Field, said: &Said) -> Result<Option<TokenStream>> {
    match (&said.default, &said.default_is, optional(&field.ty)) {
        (Some(default), None, None) => Ok(Some(quote!(Value(#default)))),
        (None, Some(words), Some(_)) => Ok(Some(quote!(Computed(#words)))),
        (None, None, None) => Ok(said.like.is_none().then(|| quote!(Required))),
        _ => Err(Error::new_spanned(field, "an Option needs default_is = …, and nothing else takes it")),
    }
}

/// The `T` of an `Option<T>`.
fn optional(of: &Type) -> Option<&Type> {
    let Type::Path(path) = of else { return None };
    let last = path.path.segments.last().filter(|segment| segment.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(of)) => Some(of),
        _ => None,
    }
}

/// The kind of values for a type.
fn kind(of: &Type, said: &Said) -> Result<TokenStream> {
    let Type::Path(path) = of else { return Err(Error::new_spanned(of, "no setting has this type")) };
    let last = path.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
    let needed = |bound: &Option<Expr>, what: &str| {
        bound.clone().ok_or_else(|| Error::new_spanned(of, format!("it needs {what} = …")))
    };
    Ok(match last.as_str() {
        "Rate" => quote!(Rate),
        "Probability" => quote!(Probability),
        "Limit" => quote!(Limit),
        "Nanos" => {
            let max = needed(&said.max, "max")?;
            let min =
                said.min.as_ref().map_or_else(|| quote!(::longwire_units::Nanos::ZERO), |min| quote!(#min));
            quote!(Time { min: #min, max: #max })
        }
        "Bytes" | "Millionths" | "u64" | "u32" | "u16" | "u8" | "usize" => {
            let (min, max) = (needed(&said.min, "min")?, needed(&said.max, "max")?);
            let kind = match last.as_str() {
                "Bytes" => quote!(Size),
                "Millionths" => quote!(Decimal),
                _ => quote!(Integer),
            };
            quote!(#kind { min: #min, max: #max })
        }
        "Arc" => {
            let grammar = needed(&said.grammar, "grammar")?;
            quote!(Parsed(#grammar))
        }
        _ => quote!(Choice(<#of as ::longwire_settings::Choice>::WORDS)),
    })
}
