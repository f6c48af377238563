//! Tables with settings declared by `#[derive(Settings)]` beside the keys of a structure.

use crate::setting_schema::add_row;
use longwire_settings::{Param, Settings};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, Range};
use toml::Spanned;

/// Most entries that one count makes.
const MOST_REPEATED: u64 = 1 << 24;

/// Repetitions of an entry.
#[derive(Debug, Clone, Copy, Settings)]
#[settings(key = "entry", kind = "repetitions", source = "Longwire's own")]
pub struct RepeatSettings {
    /// Makes so many of this entry, numbered by {n}.
    #[setting(default_is = "one, without a number", min = 1, max = MOST_REPEATED)]
    pub count: Option<u64>,
    /// The first number.
    #[setting(default = "1", min = 0, max = u64::MAX >> 1)]
    pub first: u64,
}

/// A setting as written: name, text, place of the value.
pub type SettingText = (&'static str, String, Range<usize>);
/// The settings of an entry as written.
pub type Params = Vec<SettingText>;

/// A table: settings `S` stay texts until templates are expanded; other keys are those of `T`.
pub struct WithSettings<T, S> {
    rest: T,
    /// The settings.
    pub row: Params,
    settings: PhantomData<S>,
}

/// A table whose keys are all settings.
pub type Row<S> = WithSettings<NoKeys, S>;

/// No keys.
#[derive(Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoKeys {}

impl<T, S: Settings> WithSettings<T, S> {
    /// The place of a setting's value, if given.
    pub fn span(&self, name: &str) -> Option<&Range<usize>> {
        debug_assert!(S::SPEC.params.iter().any(|param| param.name == name), "{name}");
        self.row.iter().find(|(key, ..)| *key == name).map(|(.., span)| span)
    }

    /// The text of a setting, if given.
    pub fn text(&self, name: &str) -> Option<&str> {
        debug_assert!(S::SPEC.params.iter().any(|param| param.name == name), "{name}");
        self.row.iter().find(|(key, ..)| *key == name).map(|(_, text, _)| text.as_str())
    }

    /// Replaces the keys beside the settings.
    pub fn map<U>(self, rest: impl FnOnce(T) -> U) -> WithSettings<U, S> {
        WithSettings { rest: rest(self.rest), row: self.row, settings: PhantomData }
    }
}

impl<T: Default, S> Default for WithSettings<T, S> {
    fn default() -> Self {
        Self { rest: T::default(), row: Params::new(), settings: PhantomData }
    }
}

impl<T, S> Deref for WithSettings<T, S> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.rest
    }
}

impl<T: JsonSchema, S: Settings> JsonSchema for WithSettings<T, S> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator).into();
        add_row(&mut schema, &S::SPEC);
        Schema::try_from(schema).expect("a schema is an object")
    }
}

impl<'de, T: Deserialize<'de>, S: Settings> Deserialize<'de> for WithSettings<T, S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Table(PhantomData))
    }
}

/// A table that can be repeated: `count` and `first` beside the keys of `T`.
pub struct Repeated<T>(WithSettings<T, RepeatSettings>);

impl<T> Repeated<T> {
    /// Its repetition settings.
    pub fn repeats(&self) -> &WithSettings<T, RepeatSettings> {
        &self.0
    }

    /// Replaces the table.
    pub fn map<U>(self, rest: impl FnOnce(T) -> U) -> Repeated<U> {
        Repeated(self.0.map(rest))
    }
}

impl<T> Deref for Repeated<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: JsonSchema> JsonSchema for Repeated<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        WithSettings::<T, RepeatSettings>::json_schema(generator)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Repeated<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        WithSettings::deserialize(deserializer).map(Self)
    }
}

struct Table<T, S>(PhantomData<(T, S)>);

impl<'de, T: Deserialize<'de>, S: Settings> Visitor<'de> for Table<T, S> {
    type Value = WithSettings<T, S>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let example = S::SPEC.params.iter().find_map(|param| Some((param.name, param.default.value()?)));
        match example {
            Some((name, value)) if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                write!(f, "a table such as {{ {name} = {value} }}")
            }
            Some((name, value)) => write!(f, "a table such as {{ {name} = \"{value}\" }}"),
            None => f.write_str("a table"),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let mut params = Params::new();
        let rest = T::deserialize(Rest { map, row: S::SPEC.params, params: &mut params })?;
        let given = |param: &&Param| params.iter().any(|(name, ..)| *name == param.name);
        match S::SPEC.params.iter().find(|param| param.default.is_required() && !given(param)) {
            Some(param) => Err(A::Error::missing_field(param.name)),
            None => Ok(WithSettings { rest, row: params, settings: PhantomData }),
        }
    }
}

/// A table without its settings, which go to `params`.
struct Rest<'p, A> {
    map: A,
    row: &'static [Param],
    params: &'p mut Params,
}

impl<'de, A: MapAccess<'de>> Deserializer<'de> for Rest<'_, A> {
    type Error = A::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_map(Keys { rest: self, fields: None })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        visitor.visit_map(Keys { rest: self, fields: Some(fields) })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct Keys<'p, A> {
    rest: Rest<'p, A>,
    /// The keys beside the settings; none if `T` has settings itself and checks them.
    fields: Option<&'static [&'static str]>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Keys<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, mut seed: K) -> Result<Option<K::Value>, A::Error> {
        let Rest { map, row, params } = &mut self.rest;
        loop {
            let param = match map.next_key_seed(KeySeed { seed, row, fields: self.fields })? {
                None => return Ok(None),
                Some(Key::Other(key)) => return Ok(Some(key)),
                Some(Key::Setting(param, unused)) => {
                    seed = unused;
                    param
                }
            };
            let (text, span) = map.next_value_seed(ValueSeed(param))?;
            params.push((param.name, text, span));
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.rest.map.next_value_seed(seed)
    }
}

/// A setting with the unused seed, or another key.
enum Key<K, V> {
    Setting(&'static Param, K),
    Other(V),
}

struct KeySeed<K> {
    seed: K,
    row: &'static [Param],
    fields: Option<&'static [&'static str]>,
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for KeySeed<K> {
    type Value = Key<K, K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let name = String::deserialize(deserializer)?;
        if let Some(param) = self.row.iter().find(|param| param.name == name) {
            return Ok(Key::Setting(param, self.seed));
        }
        // In serde's wording, which `Reader::report` parses.
        let own: String = self.row.iter().map(|param| format!(", `{}`", param.name)).collect();
        if let Some(fields) = self.fields
            && !fields.contains(&name.as_str())
        {
            let known: String = fields.iter().map(|field| format!(", `{field}`")).collect();
            return Err(D::Error::custom(format!("unknown field `{name}`, expected one of{known}{own}")));
        }
        let judged = self.seed.deserialize(name.into_deserializer()).map(Key::Other);
        judged.map_err(|error: D::Error| D::Error::custom(format!("{error}{own}")))
    }
}

/// A setting's value as text, and its place.
struct ValueSeed(&'static Param);

impl<'de> DeserializeSeed<'de> for ValueSeed {
    type Value = (String, Range<usize>);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let value = Spanned::<Scalar>::deserialize(deserializer)?;
        let wanted = match self.0.is_switch() {
            true => "a boolean, \"yes\" or \"no\"".into(),
            false => self.0.takes(),
        };
        let span = value.span();
        match (value.into_inner(), self.0.is_switch()) {
            (Scalar::Text(text), _) | (Scalar::Number(text), false) => Ok((text, span)),
            (Scalar::Truth(truth), true) => Ok((if truth { "yes" } else { "no" }.into(), span)),
            (Scalar::Truth(truth), false) => {
                Err(D::Error::invalid_type(Unexpected::Bool(truth), &wanted.as_str()))
            }
            (Scalar::Number(_), true) => {
                Err(D::Error::invalid_type(Unexpected::Other("number"), &wanted.as_str()))
            }
        }
    }
}

/// A value of one setting.
enum Scalar {
    Text(String),
    Number(String),
    Truth(bool),
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a number")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(text.into()))
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Scalar, E> {
        Ok(Scalar::Truth(truth))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar::Number(number.to_string()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Scalar, E> {
        Ok(Scalar::Number(number.to_string()))
    }

    fn visit_i128<E: Error>(self, number: i128) -> Result<Scalar, E> {
        Ok(Scalar::Number(number.to_string()))
    }

    fn visit_u128<E: Error>(self, number: u128) -> Result<Scalar, E> {
        Ok(Scalar::Number(number.to_string()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Scalar, E> {
        Ok(Scalar::Number(number.to_string()))
    }
}
