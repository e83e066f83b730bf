// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import "@openzeppelin/contracts/token/ERC20/ERC20.sol";

// Contracts for tests on development chains. Anyone may mint, pause or blacklist: they are worthless by design.

/// An ERC-20 token as the standard has it, with the decimals that the test chooses.
contract TestERC20 is ERC20 {
    uint8 private immutable chosenDecimals;

    constructor(string memory name_, string memory symbol_, uint8 decimals_) ERC20(name_, symbol_) {
        chosenDecimals = decimals_;
    }

    function decimals() public view override returns (uint8) {
        return chosenDecimals;
    }

    function mint(address to, uint256 value) external {
        _mint(to, value);
    }
}

/// What the two USDT-like tokens share: a transfer fee that the receiver bears, a pause, and a blacklist of senders.
abstract contract FeeToken {
    string public constant name = "Tether USD";
    string public constant symbol = "USDT";
    uint8 public constant decimals = 6;

    uint256 public totalSupply;
    uint256 public feeBasisPoints;
    bool public paused;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;
    mapping(address => bool) public isBlackListed;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    function mint(address to, uint256 value) external {
        totalSupply += value;
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    /// At most 10000, which takes everything.
    function setFee(uint256 basisPoints) external {
        require(basisPoints <= 10000, "fee above everything");
        feeBasisPoints = basisPoints;
    }

    function setPaused(bool on) external {
        paused = on;
    }

    function setBlackListed(address account, bool on) external {
        isBlackListed[account] = on;
    }

    /// The fee goes to the contract, in a Transfer event of its own after that of the payment.
    function move(address from, address to, uint256 value) internal {
        require(!paused, "paused");
        require(!isBlackListed[from], "blacklisted");
        uint256 fee = (value * feeBasisPoints) / 10000;
        balanceOf[from] -= value;
        balanceOf[to] += value - fee;
        emit Transfer(from, to, value - fee);
        if (fee > 0) {
            balanceOf[address(this)] += fee;
            emit Transfer(from, address(this), fee);
        }
    }

    function spend(address owner, address spender, uint256 value) internal {
        if (allowance[owner][spender] != type(uint256).max) {
            allowance[owner][spender] -= value;
        }
    }

    /// An allowance can be changed to and from zero only.
    function allow(address spender, uint256 value) internal {
        require(value == 0 || allowance[msg.sender][spender] == 0, "allowance is not zero");
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
    }
}

/// Like USDT on Ethereum: transfer, transferFrom and approve return nothing.
contract USDTLike is FeeToken {
    function transfer(address to, uint256 value) external {
        move(msg.sender, to, value);
    }

    function transferFrom(address from, address to, uint256 value) external {
        spend(from, msg.sender, value);
        move(from, to, value);
    }

    function approve(address spender, uint256 value) external {
        allow(spender, value);
    }
}

/// Like USDT on Tron: transfer returns false although it has succeeded; transferFrom and approve return true.
contract FalseOnSuccess is FeeToken {
    function transfer(address to, uint256 value) external returns (bool) {
        move(msg.sender, to, value);
        return false;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        spend(from, msg.sender, value);
        move(from, to, value);
        return true;
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allow(spender, value);
        return true;
    }
}

/// Sends native coin on, so that it arrives by an internal call: no transaction names the receiver, and there is no log.
contract Forwarder {
    function forward(address payable to) external payable {
        send(to, msg.value);
    }

    /// The values must add up to what the transaction carries.
    function forwardMany(address payable[] calldata to, uint256[] calldata values) external payable {
        require(to.length == values.length, "lengths differ");
        uint256 left = msg.value;
        for (uint256 i = 0; i < to.length; i++) {
            left -= values[i];
            send(to[i], values[i]);
        }
        require(left == 0, "coin left over");
    }

    function send(address payable to, uint256 value) private {
        (bool ok, ) = to.call{value: value}("");
        require(ok, "receiver refused");
    }
}

/// A token that says the gross amount and takes a hundredth of it: in a second event, or silently.
contract GrossFee {
    uint8 public constant decimals = 6;
    bool public immutable silent;
    mapping(address => uint256) public balanceOf;

    event Transfer(address indexed from, address indexed to, uint256 value);

    constructor(bool silent_) {
        silent = silent_;
    }

    function mint(address to, uint256 value) external {
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        uint256 fee = value / 100;
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value - fee;
        balanceOf[address(this)] += fee;
        emit Transfer(msg.sender, to, value);
        if (!silent) {
            emit Transfer(to, address(this), fee);
        }
        return true;
    }
}

interface Payable {
    function transfer(address to, uint256 value) external;
}

/// Pays what it holds, and looks at the block's miner first: on another branch it pays another receiver, less, or fails.
contract StatePayer {
    receive() external payable {}

    /// Native coin where token is zero. The call has no return value that it trusts: see USDTLike and FalseOnSuccess.
    function pay(address token, address payable to, address payable other, uint256 value) external {
        uint256 state = uint160(address(block.coinbase)) % 5;
        require(state != 1, "not on this branch");
        if (state == 2) {
            to = other;
        } else if (state == 3) {
            value /= 7;
        }
        if (token == address(0)) {
            (bool ok, ) = to.call{value: value}("");
            require(ok, "receiver refused");
        } else {
            Payable(token).transfer(to, value);
        }
    }
}
