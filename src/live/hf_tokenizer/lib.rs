// SPDX-License-Identifier: Apache-2.0
//! The C interface of c_api.h over the `tokenizers` crate.
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::ffi::{c_char, c_void};
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe};
use std::sync::Once;

use tokenizers::models::ModelWrapper;
use tokenizers::{Decoder, Tokenizer};

/// Ids index tables: a file with larger ones is no vocabulary.
const ID_MAX: u32 = (1 << 24) - 1;
const ERROR_LENGTH_MAX: usize = 300;

pub struct DynoHfTokenizer {
    tokenizer: Tokenizer,
    id_end: u32,
    special: HashSet<u32>,
    byte_fallback: bool,
    /// Of byte-level vocabularies: the byte that each character of a token stands for.
    byte_of: Option<HashMap<char, u8>>,
}

type TextFn = extern "C" fn(*mut c_void, *const c_char, usize);
type IdsFn = extern "C" fn(*mut c_void, *const u32, usize);

#[repr(C)]
pub struct DynoHfError {
    text: TextFn,
    out: *mut c_void,
}

impl DynoHfError {
    /// One line, and not an endless one: messages of the parser may quote the file.
    fn tell(&self, message: &str) {
        let line: String = message
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(ERROR_LENGTH_MAX)
            .collect();
        (self.text)(self.out, line.as_ptr().cast(), line.len());
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("an internal error of the tokenizers library").to_owned()
}

/// Runs `f`; a failure and a panic both become an error text.
fn guarded<T>(error: &DynoHfError, f: impl FnOnce() -> Result<T, String>) -> Option<T> {
    static QUIET: Once = Once::new();
    // Otherwise a panic would write to standard error as well.
    QUIET.call_once(|| set_hook(Box::new(|_| {})));
    let result = catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|p| Err(panic_text(&*p)));
    result.map_err(|message| error.tell(&message)).ok()
}

fn owned(strings: &[&str]) -> Vec<String> {
    strings.iter().map(|s| (*s).to_owned()).collect()
}

impl DynoHfTokenizer {
    fn open(json: &[u8]) -> Result<Self, String> {
        let mut tokenizer = Tokenizer::from_bytes(json).map_err(|e| e.to_string())?;
        // A server neither cuts nor fills a prompt, and its counts repeat.
        tokenizer.with_truncation(None).map_err(|e| e.to_string())?;
        tokenizer.with_padding(None);
        if let ModelWrapper::BPE(bpe) = tokenizer.get_model() {
            if bpe.dropout.is_some() {
                let mut without = bpe.clone();
                without.dropout = None;
                tokenizer.with_model(ModelWrapper::BPE(without));
            }
        }
        let largest = tokenizer.get_vocab(true).into_values().max();
        let largest = largest.ok_or("the vocabulary is empty")?;
        if largest > ID_MAX {
            return Err(format!("token id {largest} is above {ID_MAX}"));
        }
        let special = tokenizer
            .get_added_tokens_decoder()
            .into_iter()
            .filter_map(|(id, token)| token.special.then_some(id))
            .collect();
        let mut opened = Self {
            tokenizer,
            id_end: largest + 1,
            special,
            byte_fallback: false,
            byte_of: None,
        };
        // What a decoder does with a token tells more than its name: it may be one of a sequence.
        opened.byte_fallback = opened.text_of(owned(&["<0x41>"]))? == "A";
        if opened.text_of(owned(&["\u{120}"]))? == " " {
            opened.byte_of = Some(byte_level_table());
        }
        Ok(opened)
    }

    fn text_of(&self, tokens: Vec<String>) -> Result<String, String> {
        match self.tokenizer.get_decoder() {
            Some(decoder) => decoder.decode(tokens).map_err(|e| e.to_string()),
            None => Ok(tokens.join(" ")),
        }
    }

    fn token_bytes(&self, id: u32) -> Result<Vec<u8>, String> {
        let Some(token) = self.tokenizer.id_to_token(id) else {
            return Ok(Vec::new());
        };
        if let Some(byte_of) = &self.byte_of {
            let bytes: Option<Vec<u8>> = token.chars().map(|c| byte_of.get(&c).copied()).collect();
            return Ok(bytes.unwrap_or_else(|| token.into_bytes()));
        }
        if self.byte_fallback && token.len() == 6 {
            let digits = token.strip_prefix("<0x").and_then(|t| t.strip_suffix('>'));
            if let Some(byte) = digits.and_then(|d| u8::from_str_radix(d, 16).ok()) {
                return Ok(vec![byte]);
            }
        }
        // Decoders treat both ends of a text in their own ways: the token stands between others.
        let first = self.text_of(owned(&["a"]))?;
        let both = self.text_of(owned(&["a", "a"]))?;
        let three = self.text_of(owned(&["a", &token, "a"]))?;
        let last = both.strip_prefix(&first).unwrap_or("");
        let middle = three.strip_prefix(&first).and_then(|t| t.strip_suffix(last));
        Ok(middle.unwrap_or(&token).as_bytes().to_vec())
    }
}

/// Byte-level vocabularies write printable Latin-1 bytes as themselves and the others, in order, as
/// the characters from U+0100 on.
fn byte_level_table() -> HashMap<char, u8> {
    let mut table = HashMap::with_capacity(256);
    let mut next = 0x100;
    for byte in 0..=255u8 {
        let code = match byte {
            b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => u32::from(byte),
            _ => {
                next += 1;
                next - 1
            }
        };
        table.extend(char::from_u32(code).map(|c| (c, byte)));
    }
    table
}

/// # Safety
/// `data` has `count` items, or is anything when `count` is 0.
unsafe fn items<'a, T>(data: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    std::slice::from_raw_parts(data, count)
}

/// # Safety
/// As in c_api.h; so for all functions below.
#[no_mangle]
pub unsafe extern "C" fn dyno_hf_open(
    json: *const c_char,
    size: usize,
    error: DynoHfError,
) -> *mut DynoHfTokenizer {
    let bytes = items(json.cast::<u8>(), size);
    let opened = guarded(&error, || DynoHfTokenizer::open(bytes));
    opened.map_or(std::ptr::null_mut(), |t| Box::into_raw(Box::new(t)))
}

/// # Safety
/// See above.
#[no_mangle]
pub unsafe extern "C" fn dyno_hf_free(tokenizer: *mut DynoHfTokenizer) {
    if !tokenizer.is_null() {
        drop(Box::from_raw(tokenizer));
    }
}

/// # Safety
/// See above.
#[no_mangle]
pub unsafe extern "C" fn dyno_hf_encode(
    tokenizer: *const DynoHfTokenizer,
    text: *const c_char,
    size: usize,
    add_special: bool,
    ids: IdsFn,
    out: *mut c_void,
    error: DynoHfError,
) -> bool {
    let bytes = items(text.cast::<u8>(), size);
    let encoded = guarded(&error, || {
        let text = String::from_utf8_lossy(bytes);
        let encoding = (*tokenizer).tokenizer.encode_fast(text, add_special);
        encoding.map_err(|e| e.to_string())
    });
    let Some(encoding) = encoded else {
        return false;
    };
    ids(out, encoding.get_ids().as_ptr(), encoding.get_ids().len());
    true
}

/// # Safety
/// See above.
#[no_mangle]
pub unsafe extern "C" fn dyno_hf_decode(
    tokenizer: *const DynoHfTokenizer,
    ids: *const u32,
    count: usize,
    skip_special: bool,
    text: TextFn,
    out: *mut c_void,
    error: DynoHfError,
) -> bool {
    let ids = items(ids, count);
    let decoded = guarded(&error, || {
        let decoded = (*tokenizer).tokenizer.decode(ids, skip_special);
        decoded.map_err(|e| e.to_string())
    });
    let Some(decoded) = decoded else {
        return false;
    };
    text(out, decoded.as_ptr().cast(), decoded.len());
    true
}

/// # Safety
/// See above.
#[no_mangle]
pub unsafe extern "C" fn dyno_hf_id_end(tokenizer: *const DynoHfTokenizer) -> u32 {
    (*tokenizer).id_end
}

/// # Safety
/// See above.
#[no_mangle]
pub unsafe extern "C" fn dyno_hf_find(
    tokenizer: *const DynoHfTokenizer,
    token: *const c_char,
    size: usize,
    id: *mut u32,
) -> bool {
    let token = std::str::from_utf8(items(token.cast::<u8>(), size)).ok();
    let found = token.and_then(|t| (*tokenizer).tokenizer.token_to_id(t));
    if let Some(found) = found {
        *id = found;
    }
    found.is_some()
}

/// # Safety
/// See above.
#[no_mangle]
pub unsafe extern "C" fn dyno_hf_is_special(tokenizer: *const DynoHfTokenizer, id: u32) -> bool {
    (*tokenizer).special.contains(&id)
}

/// # Safety
/// See above.
#[no_mangle]
pub unsafe extern "C" fn dyno_hf_token_bytes(
    tokenizer: *const DynoHfTokenizer,
    id: u32,
    bytes: TextFn,
    out: *mut c_void,
    error: DynoHfError,
) -> bool {
    let Some(found) = guarded(&error, || (*tokenizer).token_bytes(id)) else {
        return false;
    };
    bytes(out, found.as_ptr().cast(), found.len());
    true
}
