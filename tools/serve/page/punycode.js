'use strict';
/* punycode.js: what markdown-it wants of Node's module: names of hosts as they are asked for.
 *
 * The browser has it in URL. The way back is left out on purpose: a name is shown in the letters
 * that it is asked by, so that none looks like another. */

exports.toASCII = function (name) {
    try {
        return new URL('http://' + name).hostname;
    } catch {
        return name;
    }
};

exports.toUnicode = function (name) {
    return name;
};
