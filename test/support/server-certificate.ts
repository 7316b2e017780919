import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

/** A self-signed certificate for 127.0.0.1 and localhost, and its key, both PEM. */
export interface ServerCertificate {
  readonly certificate: string;
  readonly key: string;
}

const TAG = {
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

const ECDSA_WITH_SHA256 = Buffer.from('2a8648ce3d040302', 'hex');
const COMMON_NAME = Buffer.from('550403', 'hex');
const SUBJECT_ALTERNATIVE_NAME = Buffer.from('551d11', 'hex');

/**
 * Makes a certificate without the openssl program, which not every machine has. ECDSA with SHA-256, because channel
 * binding of SCRAM needs a signature with a hash of its own.
 *
 * @see {@link https://www.rfc-editor.org/rfc/rfc5280#section-4.1 | RFC 5280, 4.1}
 */
export function createServerCertificate(): ServerCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
  });
  const algorithm = der(TAG.sequence, der(TAG.oid, ECDSA_WITH_SHA256));
  const name = der(
    TAG.sequence,
    der(
      TAG.set,
      der(
        TAG.sequence,
        der(TAG.oid, COMMON_NAME),
        der(TAG.utf8, Buffer.from('localhost')),
      ),
    ),
  );
  const unsigned = der(
    TAG.sequence,
    der(0xa0, der(TAG.integer, Buffer.of(2))),
    der(TAG.integer, Buffer.concat([Buffer.of(1), randomBytes(15)])),
    algorithm,
    name,
    der(TAG.sequence, time('20200101000000Z'), time('21000101000000Z')),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(TAG.sequence, alternativeNames())),
  );
  const signature = sign('sha256', unsigned, privateKey);
  const certificate = der(
    TAG.sequence,
    unsigned,
    algorithm,
    der(TAG.bitString, Buffer.of(0), signature),
  );
  return {
    certificate: pem(certificate),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

function alternativeNames(): Buffer {
  const dnsName = der(0x82, Buffer.from('localhost'));
  const ipAddress = der(0x87, Buffer.of(127, 0, 0, 1));
  return der(
    TAG.sequence,
    der(TAG.oid, SUBJECT_ALTERNATIVE_NAME),
    der(TAG.octetString, der(TAG.sequence, dnsName, ipAddress)),
  );
}

function time(text: string): Buffer {
  return der(TAG.generalizedTime, Buffer.from(text));
}

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.of(tag), length(content.length), content]);
}

function length(bytes: number): Buffer {
  if (bytes < 0x80) return Buffer.of(bytes);
  if (bytes < 0x100) return Buffer.of(0x81, bytes);
  return Buffer.of(0x82, bytes >> 8, bytes & 0xff);
}

function pem(certificate: Buffer): string {
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? [];
  return [
    '-----BEGIN CERTIFICATE-----',
    ...lines,
    '-----END CERTIFICATE-----',
    '',
  ].join('\n');
}
