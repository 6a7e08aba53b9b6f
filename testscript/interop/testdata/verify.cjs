// Verifies a Sigstore bundle made with a key by the library that npm uses: node verify.cjs NODE_MODULES KEY BUNDLE FILE
const { createRequire } = require("node:module");
const { createPublicKey } = require("node:crypto");
const { readFileSync } = require("node:fs");

const [modules, key, bundle, file] = process.argv.slice(2);
const load = createRequire(modules + "/");
const { bundleFromJSON } = load("@sigstore/bundle");
const { Verifier, toSignedEntity, toTrustMaterial } = load("@sigstore/verify");

const nothing = { mediaType: "", tlogs: [], certificateAuthorities: [], ctlogs: [], timestampAuthorities: [] };
const publicKey = createPublicKey(readFileSync(key));
const trust = toTrustMaterial(nothing, () => ({ publicKey, validFor: () => true }));
const verifier = new Verifier(trust, { tlogThreshold: 0, ctlogThreshold: 0, tsaThreshold: 0, timestampThreshold: 0 });
verifier.verify(toSignedEntity(bundleFromJSON(JSON.parse(readFileSync(bundle))), readFileSync(file)));
