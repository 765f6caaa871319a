//! What users are told of what is not had beside a confined core: a gateway that is one process has it, where
//! the gateway's file allows that.

/// Whether a gateway of several processes could be one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OneProcess {
    /// It could.
    #[default]
    Possible,
    /// Its file forbids it.
    Never,
}

impl OneProcess {
    /// Says what is not had beside a confined core, and the way to it, if there is one.
    pub(crate) fn misses(self, what: &str) -> String {
        let way = match self {
            OneProcess::Possible => ": `ravelin serve --one-process` runs a gateway that has it",
            OneProcess::Never => "",
        };
        format!("beside a confined core {what}{way}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_named_where_there_is_one() {
        let of = |one: OneProcess| one.misses("there are no names");
        assert!(of(OneProcess::Possible).contains("names: `ravelin serve --one-process`"));
        assert_eq!(of(OneProcess::Never), "beside a confined core there are no names");
    }
}
