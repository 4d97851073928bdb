//! The common part of the wire forms: enums whose variants have names there, each written once.

/// For fields that are left out because a reader assumes the default.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A name on the wire that no variant has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{name}` is no {what}")]
pub struct UnknownName {
    pub what: &'static str,
    pub name: String,
}

/// Declares an enum by its variants and their wire names, with `ALL`, `name`, `Display`, `FromStr` and
/// serde by wire name.
#[macro_export]
macro_rules! wire_enum {
    (
        $(#[$attribute:meta])*
        pub enum $type:ident ($what:literal) {
            $( $(#[$doc:meta])* $variant:ident = $name:literal, )+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $type {
            $( $(#[$doc])* $variant, )+
        }

        impl $type {
            pub const ALL: &[Self] = &[$( Self::$variant, )+];

            /// As stored and sent.
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$variant => $name, )+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::wire::UnknownName;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                match name {
                    $( $name => Ok(Self::$variant), )+
                    _ => Err($crate::wire::UnknownName { what: $what, name: name.to_owned() }),
                }
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                name.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use wire_enum;
