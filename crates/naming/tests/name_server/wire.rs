//! Messages of the DNS written and read byte by byte, without the library that the name server uses.

/// A query in parts, so that tests can make each of them wrong.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) id: u16,
    pub(crate) flags: u16,
    pub(crate) name: String,
    pub(crate) kind: u16,
    pub(crate) class: u16,
    pub(crate) edns: Option<AskedEdns>,
}

#[derive(Clone, Debug)]
pub(crate) struct AskedEdns {
    pub(crate) size: u16,
    pub(crate) version: u8,
    pub(crate) dnssec_ok: bool,
    pub(crate) options: Vec<(u16, Vec<u8>)>,
}

pub(crate) fn asked(name: &str, kind: u16) -> Asked {
    Asked { id: 0x1234, flags: 0x0100, name: name.to_owned(), kind, class: 1, edns: None }
}

pub(crate) fn edns(options: &[(u16, &[u8])]) -> Option<AskedEdns> {
    let options = options.iter().map(|(code, data)| (*code, data.to_vec())).collect();
    Some(AskedEdns { size: 1_232, version: 0, dnssec_ok: false, options })
}

pub(crate) fn push_name(out: &mut Vec<u8>, name: &str) {
    for label in name.split('.').filter(|label| !label.is_empty()) {
        out.push(label.len() as u8);
        out.extend(label.bytes());
    }
    out.push(0);
}

impl Asked {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for word in [self.id, self.flags, 1, 0, 0, u16::from(self.edns.is_some())] {
            out.extend(word.to_be_bytes());
        }
        push_name(&mut out, &self.name);
        out.extend(self.kind.to_be_bytes());
        out.extend(self.class.to_be_bytes());
        if let Some(edns) = &self.edns {
            out.push(0);
            out.extend(41_u16.to_be_bytes());
            out.extend(edns.size.to_be_bytes());
            out.extend([0, edns.version, u8::from(edns.dnssec_ok) << 7, 0]);
            let length: usize = edns.options.iter().map(|(_, data)| 4 + data.len()).sum();
            out.extend((length as u16).to_be_bytes());
            for (code, data) in &edns.options {
                out.extend(code.to_be_bytes());
                out.extend((data.len() as u16).to_be_bytes());
                out.extend(data);
            }
        }
        out
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) kind: u16,
    pub(crate) class: u16,
    pub(crate) ttl: u32,
    /// Names in it are written out.
    pub(crate) data: Vec<u8>,
}

/// A reply in parts.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) id: u16,
    pub(crate) flags: u16,
    /// With the upper bits of EDNS.
    pub(crate) rcode: u16,
    pub(crate) questions: Vec<(String, u16, u16)>,
    pub(crate) sections: [Vec<Record>; 3],
    pub(crate) edns: Option<AskedEdns>,
}

impl Said {
    pub(crate) fn is_authoritative(&self) -> bool {
        self.flags & 0x0400 != 0
    }

    pub(crate) fn is_truncated(&self) -> bool {
        self.flags & 0x0200 != 0
    }

    pub(crate) fn option(&self, code: u16) -> Option<&[u8]> {
        let options = &self.edns.as_ref()?.options;
        options.iter().find(|option| option.0 == code).map(|option| &option.1[..])
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn word(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    fn long(&mut self) -> Option<u32> {
        Some(u32::from(self.word()?) << 16 | u32::from(self.word()?))
    }

    fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        let taken = self.bytes.get(self.at..self.at + length)?.to_vec();
        self.at += length;
        Some(taken)
    }

    fn name(&mut self) -> Option<String> {
        let (mut name, mut end, mut jumps) = (String::new(), None, 0);
        loop {
            let length = self.byte()?;
            match length {
                0 => break,
                1..=63 => {
                    let label = self.take(usize::from(length))?;
                    name.extend(label.iter().map(|&byte| char::from(byte)));
                    name.push('.');
                }
                192.. => {
                    let to = usize::from(length & 63) << 8 | usize::from(self.byte()?);
                    end.get_or_insert(self.at);
                    jumps += 1;
                    if jumps > 20 {
                        return None;
                    }
                    self.at = to;
                }
                _ => return None,
            }
        }
        self.at = end.unwrap_or(self.at);
        Some(name)
    }

    fn data(&mut self, kind: u16, length: usize) -> Option<Vec<u8>> {
        let end = self.at + length;
        let mut out = Vec::new();
        let names = match kind {
            2 => 1,
            6 => 2,
            _ => 0,
        };
        for _ in 0..names {
            push_name(&mut out, &self.name()?);
        }
        out.extend(self.take(end.checked_sub(self.at)?)?);
        Some(out)
    }
}

/// Reads a whole message; none if a byte is out of place.
pub(crate) fn read(bytes: &[u8]) -> Option<Said> {
    let mut reader = Reader { bytes, at: 0 };
    let (id, flags) = (reader.word()?, reader.word()?);
    let counts = [reader.word()?, reader.word()?, reader.word()?, reader.word()?];
    let mut said = Said {
        id,
        flags,
        rcode: flags & 15,
        questions: Vec::new(),
        sections: Default::default(),
        edns: None,
    };
    for _ in 0..counts[0] {
        said.questions.push((reader.name()?, reader.word()?, reader.word()?));
    }
    for (section, count) in counts[1..].iter().enumerate() {
        for _ in 0..*count {
            let (name, kind, class) = (reader.name()?, reader.word()?, reader.word()?);
            let (ttl, length) = (reader.long()?, usize::from(reader.word()?));
            let data = reader.data(kind, length)?;
            if kind != 41 {
                said.sections[section].push(Record { name, kind, class, ttl, data });
                continue;
            }
            assert!(section == 2 && said.edns.is_none() && name.is_empty(), "one OPT, in its place");
            said.rcode |= (ttl >> 24 << 4) as u16;
            let mut options = Vec::new();
            let mut inner = Reader { bytes: &data, at: 0 };
            while inner.at < data.len() {
                let (code, length) = (inner.word()?, usize::from(inner.word()?));
                options.push((code, inner.take(length)?));
            }
            let (version, dnssec_ok) = ((ttl >> 16) as u8, ttl >> 15 & 1 == 1);
            said.edns = Some(AskedEdns { size: class, version, dnssec_ok, options });
        }
    }
    (reader.at == bytes.len()).then_some(said)
}
